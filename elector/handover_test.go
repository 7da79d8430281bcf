package elector_test

import (
	"context"
	"errors"
	"slices"
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

const (
	// handovers is the number of handovers of each kind.
	handovers = 20
	// soon is the bound of their median, with all kinds in parallel on a busy machine: a change
	// that is not notified at once is detected by a read or by the lease, and both take a minute
	// here. (That a graceful stop takes at most 50 ms is measured elsewhere, with less load.)
	soon = 3 * time.Second
)

// runner leads, and reports when its function begins and whether it has returned.
type runner struct {
	*node
	began    chan time.Time
	enough   chan error // what the lead function returns
	resign   chan struct{}
	returned atomic.Bool
}

func (r *runner) lead(ctx context.Context, l *elector.Leadership) error {
	began := time.Now()
	r.returned.Store(false)
	defer r.returned.Store(true)
	r.won <- l
	r.began <- began
	select {
	case err := <-r.enough:
		return err
	case <-r.resign:
		_ = l.Resign(context.WithoutCancel(ctx)) // the test checks the result from outside
		<-ctx.Done()
	case <-ctx.Done():
		time.Sleep(3 * time.Millisecond) // the time to stop; no other lead function may begin meanwhile
	}
	return nil
}

func race(t *testing.T, cli *clientv3.Client, name, id string) *runner {
	t.Helper()
	r := &runner{
		node:  &node{id: id, won: make(chan *elector.Leadership, 1024)},
		began: make(chan time.Time, 1024), enough: make(chan error), resign: make(chan struct{}),
	}
	r.runWith(t, config(name, id, cli, func(cfg *elector.Config) {
		cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		cfg.Candidate.WatchCheck = time.Minute
	}), r.lead)
	return r
}

// However a tenure ends, the successor leads in milliseconds, at a TTL of a minute. If the node
// itself ends it, the function has returned and the status is unknown before the successor's
// function begins.
//
// The test fails if the session is not closed, or is closed under a context that has ended, or
// before the lead function has returned.
func TestHandover(t *testing.T) {
	c := etcdtest.Shared(t)
	for what, way := range map[string]struct {
		end   func(t *testing.T, r *runner, l *elector.Leadership)
		cause error
		// orderly is true if the node itself ends the tenure, through its function.
		orderly, stops bool
	}{
		"end of Run":     {end: func(_ *testing.T, r *runner, _ *elector.Leadership) { r.stop() }, cause: eldest.ErrClosed, orderly: true, stops: true},
		"return":         {end: func(t *testing.T, r *runner, _ *elector.Leadership) { give(t, r.enough, nil) }, cause: eldest.ErrClosed, orderly: true},
		"error":          {end: func(t *testing.T, r *runner, _ *elector.Leadership) { give(t, r.enough, errEnough) }, cause: eldest.ErrClosed, orderly: true},
		"resignation":    {end: func(t *testing.T, r *runner, _ *elector.Leadership) { give(t, r.resign, struct{}{}) }, cause: eldest.ErrResigned},
		"key deleted":    {end: deleteKey(c), cause: eldest.ErrDeposed},
		"lease revoked":  {end: revokeLease(c), cause: nil}, // deposed or lost, whichever is detected first
		"evicted by one": {end: evict(c), cause: eldest.ErrDeposed},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			clients := []*clientv3.Client{c.Client(t), c.Client(t)}
			old := race(t, clients[0], name, "n0")
			etcdtest.Take(t, old.began, "the first function")
			var took []time.Duration
			for i := range handovers {
				l := etcdtest.Take(t, old.won, "a tenure")
				next := race(t, clients[(i+1)%2], name, "n"+strconv.Itoa(i+1))
				next.follows(t, old.id)
				begin := time.Now()
				way.end(t, old, l)
				began := etcdtest.Take(t, next.began, "the successor's function")
				took = append(took, began.Sub(begin))
				require.Less(t, took[i], etcdtest.Patience, "it waited for the lease")
				if way.orderly {
					require.True(t, old.returned.Load(), "two functions")
					require.NotEqual(t, elector.Leading, old.Status().Role())
				}
				etcdtest.Take(t, l.Done(), "the end of the old tenure")
				if way.cause != nil {
					require.ErrorIs(t, l.Err(), way.cause)
				}
				require.False(t, l.Holds(0))
				if !way.stops {
					old.follows(t, next.id)
				}
				require.ErrorIs(t, old.end(t), context.Canceled)
				old = next
			}
			slices.Sort(took)
			t.Logf("median %v, longest %v", took[handovers/2], took[handovers-1])
			require.Less(t, took[handovers/2], soon)
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

func deleteKey(c *etcdtest.Cluster) func(*testing.T, *runner, *elector.Leadership) {
	return func(t *testing.T, _ *runner, l *elector.Leadership) {
		require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), l.Key())))
	}
}

func revokeLease(c *etcdtest.Cluster) func(*testing.T, *runner, *elector.Leadership) {
	return func(t *testing.T, _ *runner, l *elector.Leadership) {
		cli := c.Client(t)
		require.NoError(t, etcdtest.Err(cli.Revoke(etcdtest.Context(t), clientv3.LeaseID(queueOf(t, cli, l.Election())[0].Lease))))
	}
}

// evict runs a second node with the leader's node ID until the leader's tenure has ended.
func evict(c *etcdtest.Cluster) func(*testing.T, *runner, *elector.Leadership) {
	return func(t *testing.T, r *runner, l *elector.Leadership) {
		ctx, stop := context.WithCancelCause(etcdtest.Context(t))
		defer context.AfterFunc(l.Context(), func() { stop(errEnough) })()
		e, err := elector.New(config(l.Election(), r.id, c.Client(t), takeOver))
		require.NoError(t, err)
		err = e.Run(ctx, func(context.Context, *elector.Leadership) error { return nil })
		require.True(t, errors.Is(err, errEnough), "%v", err)
	}
}

// Of 40 nodes one after another leaves: they lead in the order in which they registered, each in
// its first round, and each follows every new leader at once (G5).
func TestHandoverInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const crowd = 40
	name, c := etcdtest.Election(t), etcdtest.Shared(t)
	clients := []*clientv3.Client{c.Client(t), c.Client(t), c.Client(t), c.Client(t)}
	var nodes []*node
	var rounds atomic.Int64
	for i := range crowd {
		source := elector.Always(elector.Client(clients[i%len(clients)]))
		nodes = append(nodes, run(t, config(name, "n"+strconv.Itoa(i), nil, func(cfg *elector.Config) {
			cfg.Source = func(ctx context.Context) (elector.Clients, error) {
				rounds.Add(1)
				return source(ctx)
			}
		})))
		if i > 0 {
			nodes[i].follows(t, "n0")
		}
		require.Eventually(t, func() bool { return len(queueOf(t, clients[0], name)) == i+1 }, etcdtest.Patience, time.Millisecond)
	}
	var last eldest.Token
	begin := time.Now()
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
	t.Logf("%d nodes led and left in %v", crowd, time.Since(begin))
	require.EqualValues(t, crowd, rounds.Load())
}
