package expiry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// counting counts the requests to etcd for a lease.
type counting struct {
	*clientv3.Client
	grants, renewals atomic.Int32
}

func (c *counting) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	c.grants.Add(1)
	return c.Client.Grant(ctx, ttl)
}

func (c *counting) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	c.renewals.Add(1)
	return c.Client.KeepAliveOnce(ctx, id)
}

// A lease of three seconds is held for five minutes by one grant, and a renewal at each quarter of
// its TTL.
//
// Broken by a session that renews too seldom, or more often than configured.
func TestHeldForAHundredTTLs(t *testing.T) {
	const ttl, long = 3 * time.Second, 5 * time.Minute
	rig.Run(t, func(w *rig.World) {
		cli := &counting{Client: w.Host("a").Client}
		s := open(w, lease.Config{Lease: cli, Options: lease.Options{TTL: ttl}})
		require.Equal(w.T, ttl, s.TTL())
		time.Sleep(long)
		require.NoError(w.T, s.Err())
		left, err := cli.TimeToLive(w.T.Context(), s.ID())
		require.NoError(w.T, err)
		require.Positive(w.T, left.TTL)
		require.EqualValues(w.T, 1, cli.grants.Load())
		every := lease.DefaultRenewal(ttl).Every
		require.GreaterOrEqual(w.T, cli.renewals.Load(), int32(long/every))
		require.LessOrEqual(w.T, cli.renewals.Load(), int32(long/(every-every/10)), "a tenth is drawn at random")
	})
}

// G3: when no renewal succeeds any more, the tenure ends locally, at the deadline, before the lease
// can end in etcd. Later calls on it fail because of the session's end, not the tenure's.
//
// Broken by a tenure that does not end with its session, and by a session without a deadline.
func TestTenureEndsByTheDeadline(t *testing.T) {
	const ttl, margin = 30 * time.Second, 25 * time.Second
	rig.Run(t, func(w *rig.World) {
		ctx, host := w.T.Context(), w.Host("a")
		granted := w.Now()
		session := open(w, lease.Config{
			Lease: host.Client,
			Options: lease.Options{
				TTL: ttl, Margin: margin,
				Renewal: func(time.Duration) lease.Renewal { return lease.Renewal{Every: time.Second, Timeout: time.Second} },
			},
		})
		c, err := election.New(election.Config{Election: "deadline", Session: session, KV: host.Client, Watcher: host.Client})
		require.NoError(w.T, err)
		l, err := c.Campaign(ctx)
		require.NoError(w.T, err)
		host.Cut(rig.Both)
		require.True(w.T, l.Holds(0))
		require.False(w.T, l.Holds(ttl-margin))
		take(w, l.Done(), "the end of the tenure")
		require.Equal(w.T, ttl-margin, w.Now()-granted)
		require.ErrorIs(w.T, l.Err(), eldest.ErrSessionLost)
		require.ErrorIs(w.T, l.Resign(ctx), eldest.ErrNotLeading)
		require.ErrorIs(w.T, l.Resign(ctx), eldest.ErrSessionLost)
		_, err = c.Campaign(ctx)
		require.ErrorIs(w.T, err, eldest.ErrSessionLost, "of a session that is over, not of a tenure")
		require.NoError(w.T, c.Close(ctx))
	})
}

// turnTTL is the TTL of the participants that take turns.
const turnTTL = 2 * time.Second

// participant is one of two that take turns: a session and a candidate for each.
type participant struct {
	host      *rig.Host
	session   *lease.Session
	candidate *election.Candidate
}

// stand opens a session and registers.
func stand(w *rig.World, host *rig.Host, late time.Duration) *participant {
	w.T.Helper()
	p := &participant{host: host}
	p.session = open(w, lease.Config{
		Lease: host.Client,
		Options: lease.Options{
			TTL: turnTTL,
			// Long enough to receive the delayed replies: those of a second are older than the deadline
			// allows, and must not extend it.
			Renewal: func(ttl time.Duration) lease.Renewal {
				return lease.Renewal{Every: ttl / 4, Timeout: late + ttl/4}
			},
		},
	})
	var err error
	p.candidate, err = election.New(election.Config{Election: "turns", Session: p.session, KV: host.Client, Watcher: host.Client})
	require.NoError(w.T, err)
	_, err = p.candidate.Register(w.T.Context())
	require.NoError(w.T, err)
	return p
}

// leave ends a participant in an orderly way, unless it has lost its session.
func (p *participant) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = p.candidate.Close(ctx)
	_ = p.session.Close(ctx)
}

// 201 rounds of partitioning the leader, with a TTL of 2 s and replies that are delayed by nothing,
// 200 ms or 1 s: the leading context has ended when the successor wins, by its own timer, and by
// the margin earlier if no request of the old leader arrives. Fails if the deadline is counted from
// the receipt of a reply, as etcd's own client does, or if no margin is left for the clocks.
func TestCutLeader200Times(t *testing.T) {
	const rounds = 67
	margin := max(turnTTL/10, lease.MinMargin)
	for i, late := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			rig.Run(t, func(w *rig.World) {
				ctx, random := w.T.Context(), rand.New(rand.NewPCG(uint64(i), 2))
				leader := stand(w, w.Host("a"), late)
				tenure, err := leader.candidate.Await(ctx)
				require.NoError(w.T, err)
				idle, both, replies, uncut := w.Host("b"), 0, 0, 0
				for round := range rounds {
					waiter := stand(w, idle, late)
					ended := moment(w, tenure.Done())
					leader.host.Delay(rig.In, late)
					// The cut comes at a random time within two periods and a reply's delay, so
					// that it meets any phase of a renewal.
					select {
					case <-time.After(time.Duration(random.Int64N(int64(turnTTL/2 + late)))):
					case <-tenure.Done():
					}
					led, way := tenure.Err() == nil, rig.In // requests get through, replies do not
					if random.IntN(2) == 0 {
						way = rig.Both
					}
					leader.host.Cut(way)
					within, cancel := context.WithTimeout(ctx, patience)
					next, err := waiter.candidate.Await(within)
					cancel()
					require.NoError(w.T, err)
					won, what := w.Now(), fmt.Sprintf("round %d, cut %v", round, way)
					// The context, which ends by itself, and not a method that reads the clock.
					require.Error(w.T, tenure.Context().Err(), "%s: the old leading context lives at the successor's win", what)
					require.Greater(w.T, next.Token(), tenure.Token(), "G2")
					synctest.Wait()
					switch {
					case !led: // it lost the lease because of the delayed replies
						uncut++
					case way == rig.In: // its revocation arrives, and the win follows
						replies++
					default:
						both++
						require.GreaterOrEqual(w.T, won-take(w, ended, "when it ended"), margin, what)
					}
					leader.host.Heal()
					leader.leave(ctx)
					idle, leader, tenure = leader.host, waiter, next
				}
				leader.leave(ctx)
				require.Greater(w.T, both, rounds/4)
				require.Greater(w.T, replies, rounds/4)
				t.Logf("%d cut both ways, %d of replies only, %d over before", both, replies, uncut)
			})
		})
	}
}
