package regressions

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 29. The leader is stopped in an orderly way, by the end of its context. Elsewhere
// that very context is used to give the lease back, nothing is sent, and the successor
// waits for the TTL. Here it leads in milliseconds: half of 20 times within 50 ms, at
// a TTL of 10 s.
//
// Fails when elector's round says good-bye under Run's own context.
func TestRegression29_GracefulStop(t *testing.T) {
	t.Parallel()
	const stops = 20
	// A machine that is busy with other things may need a second try.
	for try := range 3 {
		took := gracefulStops(t, stops)
		t.Logf("from the end of the context to the successor's lead function: median %v, longest %v", took[stops/2], took[stops-1])
		if took[stops/2] < 50*time.Millisecond {
			return
		}
		require.Less(t, try, 2, "the successor's lead function begins too late")
	}
}

// gracefulStops stops one leader after another and returns how long each successor took
// to begin, the shortest first.
func gracefulStops(t *testing.T, stops int) []time.Duration {
	t.Helper()
	c := etcdtest.Shared(t)
	name := electionOf(t)
	var took []time.Duration
	begun := make(chan time.Time, 1)
	lead := func(ctx context.Context, l *elector.Leadership) error {
		begun <- time.Now()
		return untilTheEnd(ctx, l)
	}
	cli := [2]*clientv3.Client{c.Client(t), c.Client(t)}
	leader := stand(t, cli[0], name, "n0", lead)
	take(t, begun, "the first lead function")
	for i := range stops {
		l := take(t, leader.won, "a win")
		next := stand(t, cli[(i+1)%2], name, "n"+itoa(i+1), lead)
		next.follows(t, leader, l.Token())
		stopped := time.Now()
		leader.stop()
		took = append(took, take(t, begun, "the successor").Sub(stopped))
		require.Less(t, took[i], 5*time.Second, "it waited for the lease")
		require.ErrorIs(t, leader.end(t), context.Canceled)
		require.Error(t, l.Err())
		leader = next
	}
	_ = leader.end(t)
	slices.Sort(took)
	return took
}

// slowProof delays reads, so that the proof of a win takes its time while the events of
// a watch do not.
type slowProof struct{ clientv3.KV }

func (kv slowProof) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return delayed(ctx, func() (clientv3.OpResponse, error) { return kv.KV.Do(ctx, op) })
}

func (kv slowProof) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return delayed(ctx, func() (*clientv3.GetResponse, error) { return kv.KV.Get(ctx, key, opts...) })
}

// proofTakes is more than the news takes on a busy machine.
const proofTakes = 20 * time.Millisecond

func delayed[R any](ctx context.Context, ask func() (R, error)) (R, error) {
	select {
	case <-time.After(proofTakes): // the fault itself
	case <-ctx.Done():
	}
	return ask()
}

// Row 32. For a moment the own key is the eldest and the win is not proven. Elsewhere
// the status shows the node as the leader that it follows, 3 times in 60 hand-overs,
// and it forwards to itself. Here it never does, though the proof takes 20 ms longer than
// the news; every status that was published is looked at, not only those that somebody
// happened to see.
//
// Fails when elector.round.seen does not know its own key.
func TestRegression32_NeverFollowsItself(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := electionOf(t)
	const handovers = 60
	enough := make(chan struct{})
	var nodes []*node
	for i := range 3 {
		cli := c.Client(t)
		nodes = append(nodes, stand(t, cli, name, "n"+itoa(i), func(ctx context.Context, _ *elector.Leadership) error {
			select {
			case <-enough:
			case <-ctx.Done():
			}
			return nil
		}, func(cfg *elector.Config) {
			cfg.Source = elector.Always(elector.Clients{KV: slowProof{cli}, Watcher: cli, Lease: cli})
			cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		}))
	}
	for range handovers {
		oneLeads(t, nodes) // so that somebody waits, and sees the hand-over
		select {
		case enough <- struct{}{}:
		case <-time.After(patience):
			require.FailNow(t, "nobody leads")
		}
	}
	elders := 0 // how often a node knew that its own key is the eldest, before it led
	for _, n := range nodes {
		_ = n.end(t)
		statuses := n.log.all()
		for i, s := range statuses {
			if leader, follows := s.Leader(); follows {
				require.NotEqual(t, n.id, leader.NodeID, "%v", s)
				require.NotEqual(t, n.Instance(), leader.Instance, "%v", s)
			}
			if s.Role() == elector.Leading && i > 0 && errors.Is(statuses[i-1].Reason(), eldest.ErrNoLeader) {
				elders++
			}
		}
	}
	t.Logf("%d of %d times a node knew that its own key was the eldest, before it led", elders, handovers)
	require.Greater(t, elders, handovers/2, "INVALID: the moment was hardly ever met")
}
