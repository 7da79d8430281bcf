package election_test

import (
	"cmp"
	"context"
	"errors"
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

// While etcd does not respond the leader is suspended, and afterwards it continues to lead with its
// token: the candidate that waits does not evict it.
//
// Fails if the leading context continues, if the leadership moves, or if the token changes.
func TestHeartbeatsSuspendAndResume(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name := cluster.Client(t), etcdtest.Election(t)
	suspended := make(chan election.SuspendedEvent, 9)
	a := electiontest.Join(t, cli, name, beating, func(_ *lease.Config, e *election.Config) {
		e.Hooks.Suspended = func(e election.SuspendedEvent) { suspended <- e }
	})
	b := electiontest.Join(t, cli, name, beating)
	ctx := etcdtest.Context(t)
	l := a.Lead(t)
	waits := b.Queue(t)
	for range 2 {
		require.NoError(t, cluster.Member(0).Stop())
		<-l.Done()
		require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
		require.False(t, l.Holds(0), "it is not certain any more")
		require.ErrorIs(t, l.Guard().Alive(), eldest.ErrNotLeading)
		e := etcdtest.Take(t, suspended, "the hook")
		require.Equal(t, l.Token(), e.Token)
		require.ErrorIs(t, e.Cause, eldest.ErrSuspended)
		require.Equal(t, l.Token(), a.Candidate.Status().Token, "the key stands")
		time.Sleep(2 * lease.MinHeartbeat)
		require.NoError(t, cluster.Member(0).Cont())
		next, err := a.Candidate.Campaign(ctx)
		require.NoError(t, err, "it does not go on")
		require.Equal(t, l.Token(), next.Token(), "another tenure")
		require.Error(t, l.Err(), "an end is an end")
		require.NoError(t, next.Err())
		won := etcdtest.Take(t, a.Won, "the hook")
		for !won.Resumed {
			won = etcdtest.Take(t, a.Won, "the hook")
		}
		l = next
	}
	require.Empty(t, waits)
	require.NoError(t, l.Resign(ctx))
	require.Greater(t, electiontest.Wins(t, waits).Token(), l.Token())
}

// If a tenure is suspended, its function under Lead returns, the key is kept, and the next campaign
// continues to lead. If the caller's context has ended, Lead resigns.
func TestLeadKeepsTheKeyOfASuspendedTenure(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name := cluster.Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name, beating)
	ctx := etcdtest.Context(t)
	l := a.Lead(t)
	require.NoError(t, cluster.Member(0).Stop())
	err := l.Lead(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
	require.ErrorIs(t, err, eldest.ErrSuspended, "the key is given up")
	require.NoError(t, cluster.Member(0).Cont())
	next := a.Lead(t)
	require.Equal(t, l.Token(), next.Token())
	enough := errors.New("enough")
	require.ErrorIs(t, next.Lead(ctx, func(context.Context) error { return enough }), enough)
	require.Empty(t, electiontest.Keys(t, cli, name), "it has resigned")
}

// suspendable is a leader with heartbeats and its own clock. While silent, its heartbeats are lost.
// It beats often, but is not suspended because a busy machine stands still for a while.
type suspendable struct {
	*electiontest.Participant
	clock   *etcdtest.Clock
	timeout time.Duration
	silent  atomic.Bool
	ended   chan election.EndedEvent
}

func newSuspendable(t *testing.T, changes ...electiontest.Change) (*suspendable, *election.Leadership) {
	t.Helper()
	s := &suspendable{clock: etcdtest.NewClock()}
	ended, ending := ending()
	s.ended = ended
	beats := func(put func() error) error {
		if s.silent.Load() {
			return context.DeadlineExceeded
		}
		return put()
	}
	s.Participant = electiontest.Join(t, etcdtest.Shared(t).Client(t), etcdtest.Election(t), append(changes, tampered(beats),
		func(l *lease.Config, e *election.Config) {
			s.timeout = cmp.Or(l.Heartbeat.Timeout, 10*time.Second)
			l.Heartbeat = lease.Heartbeat{Timeout: s.timeout, Interval: lease.MinHeartbeat / 4}
			l.Clock = s.clock
			ending(e)
		})...)
	return s, s.Lead(t)
}

// suspend simulates a pause of the process: the first call after it returns that the tenure is
// suspended, before any timer has fired.
func (s *suspendable) suspend(t *testing.T, l *election.Leadership) {
	t.Helper()
	s.clock.Jump(s.timeout)
	require.False(t, l.Holds(0), "it is not certain any more")
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
}

// After a pause of the process the leader is not certain, and later continues to lead.
func TestHeartbeatsAfterAPause(t *testing.T) {
	t.Parallel()
	a, l := newSuspendable(t)
	a.suspend(t, l)
	require.NoError(t, a.Session.Err(), "the lease lives")
	require.Equal(t, l.Token(), a.Lead(t).Token(), "another tenure")
}

// A tenure that continues was handed over by nobody: its event has no Proof, whatever its win had.
func TestResumedWinHasNoProof(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	a, l := newSuspendable(t)
	b := electiontest.Join(t, a.Client, a.Candidate.Election())
	next := b.Queue(t)
	require.NoError(t, l.Resign(ctx))
	elder := electiontest.Wins(t, next)
	again := a.Queue(t)
	etcdtest.Take(t, a.Waiting, "the hook")
	require.NoError(t, elder.Resign(ctx))
	l = electiontest.Wins(t, again).Leadership
	a.suspend(t, l)
	require.Equal(t, l.Token(), a.Lead(t).Token())
	first := etcdtest.Take(t, a.Won, "the hook")
	require.Zero(t, first.Proof)
	won := etcdtest.Take(t, a.Won, "the hook")
	require.Positive(t, won.Proof)
	resumed := etcdtest.Take(t, a.Won, "the hook")
	require.True(t, resumed.Resumed)
	require.Zero(t, resumed.Proof)
	require.Greater(t, resumed.Waited, won.Waited)
}

// A suspended tenure ends finally when its key is deleted, and when it is resigned or drained: the
// candidate then has to campaign again.
func TestSuspendedTenureEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, t *testing.T, a *suspendable, l *election.Leadership){
		"deleted": func(ctx context.Context, t *testing.T, a *suspendable, l *election.Leadership) {
			require.NoError(t, etcdtest.Err(a.Client.Delete(ctx, l.Key())))
			etcdtest.Eventually(t, func() bool { return a.Candidate.Status().Token == 0 }, "the news")
			_, err := a.Candidate.Await(ctx)
			require.ErrorIs(t, err, eldest.ErrNotRegistered)
			require.ErrorIs(t, err, eldest.ErrDeposed)
		},
		"resigned": func(ctx context.Context, t *testing.T, _ *suspendable, l *election.Leadership) {
			require.NoError(t, l.Resign(ctx))
		},
		"drained": func(ctx context.Context, t *testing.T, a *suspendable, l *election.Leadership) {
			require.NoError(t, a.Candidate.Drain(l.Token(), nil))
			require.ErrorIs(t, etcdtest.Err(a.Candidate.Await(ctx)), eldest.ErrLeading, "nobody leads with the key")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, l := newSuspendable(t)
			a.suspend(t, l)
			end(etcdtest.Context(t), t, a, l)
			require.ErrorIs(t, l.Err(), eldest.ErrSuspended, "the first cause counts")
			require.Greater(t, a.Lead(t).Token(), l.Token())
		})
	}
}

// A tenure that was suspended and continues has a new Leadership: the old one cannot end it. While
// its win is being proven again, draining or resigning it, or the end of its session, ends it.
func TestEndsWhileItResumes(t *testing.T) {
	t.Parallel()
	for cause, end := range map[error]func(ctx context.Context, a *suspendable, l *election.Leadership) error{
		eldest.ErrDraining: func(_ context.Context, a *suspendable, l *election.Leadership) error {
			return a.Candidate.Drain(l.Token(), nil)
		},
		eldest.ErrResigned: func(ctx context.Context, _ *suspendable, l *election.Leadership) error { return l.Resign(ctx) },
		eldest.ErrClosed:   func(_ context.Context, a *suspendable, _ *election.Leadership) error { a.Session.Abandon(); return nil },
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			ctx := etcdtest.Context(t)
			a, old := newSuspendable(t)
			a.suspend(t, old)
			l := a.Lead(t)
			require.ErrorIs(t, old.Resign(ctx), eldest.ErrNotLeading, "it ended another one")
			old.Drain(nil)
			require.NoError(t, l.Err(), "another Leadership has ended it")

			a.silent.Store(true)
			a.suspend(t, l)
			waits := a.Campaign(ctx)
			etcdtest.Eventually(t, func() bool { return !a.Candidate.Status().Suspended }, "it is being proven")
			require.NoError(t, end(ctx, a, l))
			a.silent.Store(false)
			electiontest.Fails(t, waits, cause)
			if a.Session.Err() == nil {
				require.Greater(t, a.Lead(t).Token(), l.Token(), "it has led on")
			}
			e := etcdtest.Take(t, a.ended, "the end")
			require.True(t, e.Led)
			require.Equal(t, errors.Is(cause, eldest.ErrDraining), !e.Drained.IsZero())
		})
	}
}

// A candidate found to be the oldest by Register has to prove that again in order to lead.
func TestRegisterWhileSuspended(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	a, l := newSuspendable(t)
	a.suspend(t, l)
	require.NoError(t, etcdtest.Err(a.Candidate.Register(ctx)))
	a.silent.Store(true)
	waits := electiontest.After(func() (*election.Leadership, error) { return a.Candidate.Await(ctx) })
	etcdtest.Never(t, func() bool { return len(waits) > 0 }, lease.MinHeartbeat, "a win in no stretch")
	a.silent.Store(false)
	require.Equal(t, l.Token(), electiontest.Wins(t, waits).Token())
}

// Remaining is the time of the lease or of the heartbeats, whichever ends sooner. It is 0 once the
// tenure was suspended, or drained before its heartbeats ran out, even if later heartbeats are
// acknowledged.
//
// Fails if a later stretch counts for a tenure that was over by then.
func TestRemaining(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	const slow = 2 * time.Second // for a busy machine
	plain := electiontest.Join(t, cli, etcdtest.Election(t))
	require.Zero(t, plain.Candidate.Remaining())
	require.Zero(t, beats(t, cli, plain.Lead(t)), "nothing is sent for heartbeats without them")
	require.Greater(t, plain.Candidate.Remaining(), slow, "the lease's")

	acknowledged := make(chan lease.HeartbeatEvent, 999)
	a, l := newSuspendable(t, func(l *lease.Config, _ *election.Config) {
		l.Heartbeat.Timeout = slow
		l.Hooks.Heartbeat = func(e lease.HeartbeatEvent) {
			if e.Left > 0 {
				acknowledged <- e
			}
		}
	})
	remains := a.Candidate.Remaining
	laterBeats := func() {
		t.Helper()
		for len(acknowledged) > 0 {
			<-acknowledged
		}
		a.silent.Store(false)
		for range 2 {
			etcdtest.Take(t, acknowledged, "a heartbeat of another stretch")
		}
		require.Zero(t, remains(), "what begins later does not count")
	}
	left := remains()
	require.Less(t, left, slow)
	require.Positive(t, left)
	time.Sleep(left)
	require.Positive(t, remains(), "beats add to it")

	a.silent.Store(true)
	<-l.Done()
	require.Zero(t, remains())
	require.Equal(t, election.Status{Token: l.Token(), Suspended: true}, a.Candidate.Status())
	laterBeats()
	next, err := a.Candidate.Await(etcdtest.Context(t))
	require.NoError(t, err)
	require.Positive(t, remains())

	next.Drain(nil)
	require.Positive(t, remains(), "the key stands, and beats go on")
	a.silent.Store(true)
	etcdtest.Eventually(t, func() bool { return remains() == 0 }, "nothing remains")
	laterBeats()
	require.NoError(t, next.Resign(etcdtest.Context(t)))
	e := etcdtest.Take(t, a.ended, "the end")
	require.True(t, e.Led)
	require.False(t, e.Drained.IsZero())
	require.Zero(t, remains())
}

// The drain of a suspended tenure changes the status, and Changed says so.
func TestChangedByTheDrainOfASuspendedTenure(t *testing.T) {
	t.Parallel()
	s, l := newSuspendable(t)
	s.suspend(t, l)
	changed := s.Candidate.Changed()
	require.True(t, s.Candidate.Status().Suspended)
	l.Drain(nil)
	require.Equal(t, election.Status{Token: l.Token(), Draining: true}, s.Candidate.Status())
	etcdtest.Take(t, changed, "the change")
}
