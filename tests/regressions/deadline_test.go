package regressions

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 11. Packets are dropped without a reset. In other implementations the leader continues to
// lead until its TCP connection times out, minutes later. In Eldest its leadership ends by the
// deadline, and never after the successor's win.
//
// Fails when lease.Session has no timer for its deadline.
func TestRegression11_BlackHole(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for what, d := range map[string]etcdtest.Direction{
		"both ways": etcdtest.BothWays, "requests": etcdtest.Inbound, "replies": etcdtest.Outbound,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			host := c.Host(t)
			defer host.Mend()
			// Far enough apart to distinguish the order of the two on a busy machine.
			const granted, margin = 8 * time.Second, 3 * time.Second
			leader := join(t, host.Client(t), name, func(l *lease.Config, _ *election.Config) {
				l.TTL, l.Margin = granted, margin
				// No further attempt checks the clock.
				l.Backoff = func(int) time.Duration { return time.Hour }
			}).Lead(t)
			next := join(t, c.Client(t), name)
			ctx := etcdtest.Context(t)
			require.NoError(t, etcdtest.Err(next.Candidate.Register(ctx)))
			ended := make(chan bool, 1)
			result := electiontest.After(func() (*election.Leadership, error) {
				l, err := next.Candidate.Await(ctx)
				ended <- leader.Context().Err() != nil // this does not read the clock
				return l, err
			})
			host.Drop(d)
			begin := time.Now()
			etcdtest.Take(t, leader.Done(), "the end of the tenure")
			require.Less(t, time.Since(begin), granted, "later than the deadline of a renewal that was sent before")
			require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
			electiontest.Wins(t, result)
			require.True(t, <-ended, "the successor won first")
		})
	}
}

// lateReplies is the fault of row 12: replies to the leader are late, and while one is on its way
// no request gets through any more. renewed counts renewals; asked counts the requests whose
// replies confirm them. The last renewal that etcd has received is then older, by at least the
// delay, than the last reply that the leader receives.
func lateReplies(t *testing.T, host *etcdtest.Host, late time.Duration, renewed func() int64, asked func() int) {
	t.Helper()
	host.Delay(0, late)
	seen := renewed()
	etcdtest.Eventually(t, func() bool { return renewed() > seen+1 }, "renewals with late replies")
	before := asked()
	etcdtest.Eventually(t, func() bool { return asked() > before }, "the next request")
	<-time.After(300 * time.Millisecond) // the fault itself: the request has arrived, its reply has not
	require.Positive(t, host.Stats().Delayed.Outbound, "INVALID: nothing was late")
	host.Drop(etcdtest.Inbound)
}

// Row 12. The client's replies are delayed by 1 s. In other implementations the deadline counts
// from the receipt, and two lead for up to a second. In Eldest the leading context has ended when
// the successor wins.
//
// Fails when deadlines count from the receipt of a reply instead of from the sending of the request
// (internal/core, confirmed).
func TestRegression12_RepliesOneSecondLate(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	defer host.Mend()
	var renewals atomic.Int64
	var rec etcdtest.Recorder
	p := join(t, host.Client(t, rec.Attach), name, func(l *lease.Config, _ *election.Config) {
		// A renewal takes two replies, the majority's after the server's; this TTL is longer than
		// two renewals and the pause between them, on a busy machine as well.
		l.TTL, l.Margin = 8*time.Second, 500*time.Millisecond
		l.Renewal = func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: 500 * time.Millisecond, Timeout: 3 * time.Second}
		}
		l.Hooks.Renewed = func(lease.RenewedEvent) { renewals.Add(1) }
	})
	leader := p.Lead(t)
	result := join(t, c.Client(t), name).Queue(t)
	// The second of its two requests: its reply confirms the renewal.
	lateReplies(t, host, time.Second, renewals.Load, func() int { return rec.Count("MemberList") })
	electiontest.Wins(t, result)
	require.Error(t, leader.Err(), "two leading contexts")
	require.False(t, leader.Holds(0))
	require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
}

// Row 12 with the same fault and etcd's package: its session is alive when the successor has won.
func TestRegression12_TheFaultOfEtcdsPackage(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	defer host.Mend()
	var rec etcdtest.Recorder
	s, e := theirs(t, host.Client(t, rec.Attach), name, 9)
	require.NoError(t, e.Campaign(etcdtest.Context(t), "a"))
	_, next := theirs(t, c.Client(t), name, 60)
	won := make(chan bool, 1)
	go func() {
		if next.Campaign(etcdtest.Context(t), "b") == nil {
			won <- s.Ctx().Err() == nil
		}
	}()
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "the waiter is in the queue")
	asked := func() int { return rec.Count("LeaseKeepAlive") }
	// Late enough to be noticed on a busy machine.
	lateReplies(t, host, 4*time.Second, func() int64 { return int64(asked()) }, asked)
	require.True(t, etcdtest.Take(t, won, "the successor's win"), "the fault is mended?")
	host.Mend()
}

// Row 14. The system is suspended for an hour: the boot-time clock has advanced; the monotonic
// clock, which timers use, has not. In other implementations the session counts its lease as valid
// for another TTL. In Eldest the deadline has passed at the first use, and no request is sent that
// relies on the lease. (The first use may be any other: TestFirstCallAfterASuspend of package
// election.)
//
// Fails when lease.Session.Holds relies on its timer.
func TestRegression14_SystemSuspend(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	clock := etcdtest.NewClock()
	var rec etcdtest.Recorder
	p := join(t, c.Client(t, rec.Attach), name, func(l *lease.Config, _ *election.Config) { l.Clock = clock })
	leader := p.Lead(t)
	require.True(t, leader.Holds(time.Second))
	guarded := leader.KV()
	rec.Reset()
	clock.Jump(time.Hour)
	require.False(t, leader.Holds(0), "the first use after the resume")
	require.Error(t, leader.Err(), "its context lives on")
	require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
	require.ErrorIs(t, etcdtest.Err(guarded.Put(etcdtest.Context(t), "k", "")), eldest.ErrNotLeading)
	require.Zero(t, rec.Count("Txn"), "it was left to etcd to refuse")
	require.Equal(t, lease.Lost, p.Session.Status().State)
}
