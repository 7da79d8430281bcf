package elector_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// runner is a node whose lead function returns, or resigns, on demand. returned is true when none
// runs.
type runner struct {
	*node
	enough, resign chan struct{}
	returned       atomic.Bool
}

func race(t *testing.T, cli *clientv3.Client, name, id string) *runner {
	t.Helper()
	r := &runner{
		node:   &node{id: id, won: make(chan *elector.Leadership, 1024)},
		enough: make(chan struct{}), resign: make(chan struct{}),
	}
	r.runWith(t, config(name, id, cli, func(cfg *elector.Config) {
		cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		cfg.Candidate.WatchCheck = time.Minute
	}), func(ctx context.Context, l *elector.Leadership) error {
		r.returned.Store(false)
		defer r.returned.Store(true)
		r.won <- l
		select {
		case <-r.enough:
			return errEnough
		case <-r.resign:
			_ = l.Resign(context.WithoutCancel(ctx)) // the test checks the result from outside
			<-ctx.Done()
		case <-ctx.Done():
			time.Sleep(3 * time.Millisecond) // the time to stop; no other lead function may begin meanwhile
		}
		return nil
	})
	return r
}

// However a tenure ends, the successor leads soon, at a TTL of a minute. If the node itself ends it,
// the function has returned and the status is unknown before the successor's function begins. (The
// end of Run is TestRegression29_GracefulStop, which also measures the time.)
//
// The test fails if the session is not closed, or is closed before the lead function has returned.
func TestHandover(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	for what, way := range map[string]struct {
		end     func(t *testing.T, r *runner, l *elector.Leadership)
		cause   error // nil: deposed or lost, whichever is detected first
		orderly bool  // the node itself ends the tenure, through its function
	}{
		"return":      {func(t *testing.T, r *runner, _ *elector.Leadership) { give(t, r.enough, struct{}{}) }, eldest.ErrClosed, true},
		"resignation": {func(t *testing.T, r *runner, _ *elector.Leadership) { give(t, r.resign, struct{}{}) }, eldest.ErrResigned, false},
		"key deleted": {func(t *testing.T, _ *runner, l *elector.Leadership) {
			require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), l.Key())))
		}, eldest.ErrDeposed, false},
		"lease revoked": {func(t *testing.T, _ *runner, l *elector.Leadership) {
			lease := clientv3.LeaseID(queueOf(t, cli, l.Election())[0].Lease)
			require.NoError(t, etcdtest.Err(cli.Revoke(etcdtest.Context(t), lease)))
		}, nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			old := race(t, cli, name, "n0")
			l := etcdtest.Take(t, old.won, "the first tenure")
			for i := range 5 {
				next := race(t, cli, name, "n"+strconv.Itoa(i+1))
				next.follows(t, old.id)
				begin := time.Now()
				way.end(t, old, l)
				successor := etcdtest.Take(t, next.won, "the successor's tenure")
				require.Less(t, time.Since(begin), 30*time.Second, "it waited for the lease")
				if way.orderly {
					require.True(t, old.returned.Load(), "two functions")
					require.NotEqual(t, elector.Leading, old.Status().Role())
				}
				etcdtest.Take(t, l.Done(), "the end of the old tenure")
				if way.cause != nil {
					require.ErrorIs(t, l.Err(), way.cause)
				}
				require.False(t, l.Holds(0))
				old.follows(t, next.id)
				require.ErrorIs(t, old.end(t), context.Canceled)
				old, l = next, successor
			}
		})
	}
}

// give sends a value to a lead function that receives it.
func give[T any](t testing.TB, to chan<- T, v T) {
	t.Helper()
	select {
	case to <- v:
	case <-time.After(etcdtest.Patience):
		require.FailNow(t, "nobody leads who would take it")
	}
}

// One node after another leaves: they lead in the order in which they registered, each in its first
// round, and each follows every new leader at once (G5).
func TestHandoverInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const crowd = 10
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	var nodes []*node
	var rounds atomic.Int64
	for i := range crowd {
		source := elector.Always(elector.Client(cli))
		nodes = append(nodes, run(t, config(name, "n"+strconv.Itoa(i), nil, func(cfg *elector.Config) {
			cfg.Source = func(ctx context.Context) (elector.Clients, error) {
				rounds.Add(1)
				return source(ctx)
			}
		})))
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, cli, name)) == i+1 }, "%d are in the queue", i+1)
	}
	var last eldest.Token
	for i, n := range nodes {
		l := etcdtest.Take(t, n.won, n.id+"'s win")
		require.Greater(t, l.Token(), last)
		last = l.Token()
		for _, other := range nodes[i+1:] {
			require.Equal(t, l.Token(), other.follows(t, n.id).Token)
			require.Empty(t, other.won)
		}
		_ = n.end(t)
	}
	require.EqualValues(t, crowd, rounds.Load())
}
