package elector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
)

// A node that withdraws stops leading, follows the next leader, and does not campaign again.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a, why := &node{id: "a", won: make(chan *elector.Leadership, 1)}, make(chan error, 1)
	a.runWith(t, config(name, "a", cli), func(ctx context.Context, l *elector.Leadership) error {
		a.won <- l
		<-ctx.Done()
		why <- context.Cause(ctx)
		return nil
	})
	etcdtest.Take(t, a.won, "a's tenure")
	b := run(t, config(name, "b", cli))
	b.follows(t, "a")
	enough := errors.New("enough")
	require.NoError(t, a.Withdraw(etcdtest.Context(t), enough))
	require.ErrorIs(t, etcdtest.Take(t, why, "the cause"), enough)
	require.NotEqual(t, elector.Leading, a.Status().Role())
	etcdtest.Take(t, b.won, "b's tenure")
	a.follows(t, "b")
	require.Len(t, queueOf(t, cli, name), 1)

	c := run(t, config(name, "c", cli))
	c.follows(t, "b")
	b.stop()
	etcdtest.Take(t, c.won, "c's tenure: a stands no more")
	a.follows(t, "c")
	require.NoError(t, a.Withdraw(etcdtest.Context(t), nil), "again")
	require.ErrorIs(t, a.end(t), context.Canceled)
	require.Equal(t, elector.Unknown, a.Status().Role())
	require.NoError(t, a.Withdraw(etcdtest.Context(t), nil), "after Run")
}

// A node in the queue that withdraws leaves the queue; a node that withdraws before Run never
// enters it; and Withdraw ends with its context.
func TestWithdrawBeforeTheTurn(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	leads := run(t, config(name, "leads", cli))
	etcdtest.Take(t, leads.won, "the tenure")
	waits := run(t, config(name, "waits", cli))
	waits.follows(t, "leads")
	require.NoError(t, waits.Withdraw(etcdtest.Context(t), nil))
	require.Len(t, queueOf(t, cli, name), 1)
	waits.follows(t, "leads")

	e, err := elector.New(config(name, "never", cli))
	require.NoError(t, err)
	require.NoError(t, e.Withdraw(etcdtest.Context(t), nil))
	ctx, stop := context.WithCancel(etcdtest.Context(t))
	done := etcdtest.Go(func() error {
		return e.Run(ctx, func(context.Context, *elector.Leadership) error { return errors.New("it led") })
	})
	never := &node{Elector: e, id: "never"}
	never.follows(t, "leads")
	stop()
	require.ErrorIs(t, etcdtest.Take(t, done, "the end of Run"), context.Canceled)

	stuck := &node{id: "stuck", won: make(chan *elector.Leadership, 1)}
	release := make(chan struct{})
	stuck.runWith(t, config(etcdtest.Election(t), "stuck", cli), func(context.Context, *elector.Leadership) error {
		stuck.won <- nil
		<-release
		return nil
	})
	etcdtest.Take(t, stuck.won, "the tenure")
	over, cancel := context.WithCancel(etcdtest.Context(t))
	cancel()
	require.ErrorIs(t, stuck.Withdraw(over, nil), context.Canceled)
	close(release)
	require.NoError(t, stuck.Withdraw(etcdtest.Context(t), nil))
}

// An elector can run more than once: the end of an earlier Run has no effect on a later Withdraw.
func TestWithdrawInALaterRun(t *testing.T) {
	t.Parallel()
	e, err := elector.New(config(etcdtest.Election(t), "n", etcdtest.Shared(t).Client(t)))
	require.NoError(t, err)
	first, stop := context.WithCancel(etcdtest.Context(t))
	stop()
	require.ErrorIs(t, e.Run(first, func(context.Context, *elector.Leadership) error { return nil }), context.Canceled)

	second, stop := context.WithCancel(etcdtest.Context(t))
	won, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- e.Run(second, func(context.Context, *elector.Leadership) error { close(won); <-release; return nil })
	}()
	etcdtest.Take(t, won, "the tenure")
	over, cancel := context.WithCancel(etcdtest.Context(t))
	cancel()
	require.ErrorIs(t, e.Withdraw(over, nil), context.Canceled, "it leads")
	close(release)
	require.NoError(t, e.Withdraw(etcdtest.Context(t), nil))
	stop()
	require.ErrorIs(t, etcdtest.Take(t, done, "the end of Run"), context.Canceled)
}

// Withdraw does not wait for the function that an earlier Run left behind: the node has no key. It
// follows the leader.
func TestWithdrawWhileALaterRunWaits(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	e, err := elector.New(config(name, "n", cli, func(cfg *elector.Config) { cfg.Drain = time.Millisecond }))
	require.NoError(t, err)
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	require.ErrorIs(t, e.Run(ctx, func(context.Context, *elector.Leadership) error {
		cancel()
		<-release
		return nil
	}), eldest.ErrStuck)
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), name+"/", clientv3.WithPrefix()))) // the key that was left
	leader := run(t, config(name, "leader", cli))
	etcdtest.Take(t, leader.won, "the win")

	again := &node{id: "n"}
	again.Elector, again.done = e, make(chan error, 1)
	ctx, again.stop = context.WithCancel(etcdtest.Context(t))
	go func() { again.done <- e.Run(ctx, untilOver) }()
	_, err = e.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrNotRegistered) })
	require.NoError(t, err)
	require.NoError(t, e.Withdraw(etcdtest.Context(t), nil))
	again.follows(t, "leader")
	require.ErrorIs(t, again.end(t), eldest.ErrStuck)
	close(release)
}

// A function that an earlier Run left behind and that has returned is not reported as stuck, also if
// the context of the later Run has ended already.
func TestLaterRunIsNotStuckAfterAll(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		e, err := elector.New(config("stuck", "n", cli, virtual))
		require.NoError(t, err)
		for range 20 {
			release := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			require.ErrorIs(t, e.Run(ctx, func(context.Context, *elector.Leadership) error {
				cancel()
				<-release
				return nil
			}), eldest.ErrStuck)
			close(release)
			synctest.Wait()
			require.NotErrorIs(t, e.Run(ctx, untilOver), eldest.ErrStuck)
		}
	})
}

// A node that withdrew before Run requests no lease.
func TestWithdrawnNodeHasNoLease(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		var grants grantCount
		grants.Lease = cli
		for range 200 {
			e, err := elector.New(config("withdrawn", "n", cli, virtual, func(cfg *elector.Config) {
				cfg.Source = elector.Always(elector.Clients{KV: cli, Watcher: cli, Lease: &grants, Majority: cli})
			}))
			require.NoError(t, err)
			require.NoError(t, e.Withdraw(t.Context(), nil))
			require.ErrorIs(t, e.Run(etcdtest.ContextFor(t, time.Millisecond), untilOver), context.DeadlineExceeded)
		}
		require.Zero(t, grants.n.Load())
	})
}

// grantCount counts the leases that were requested.
type grantCount struct {
	clientv3.Lease
	n atomic.Int32
}

func (g *grantCount) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	g.n.Add(1)
	return g.Lease.Grant(ctx, ttl)
}

// A node that has withdrawn asks its source for other clients when those that it has are closed.
func TestWithdrawnNodeGetsOtherClients(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, etcd *memetcd.Etcd) {
		leader := run(t, config("swap", "leader", cli, virtual))
		etcdtest.Take(t, leader.won, "the win")
		var clients atomic.Pointer[clientv3.Client]
		first, _ := etcd.Client()
		clients.Store(first)
		n := run(t, config("swap", "n", nil, virtual, func(cfg *elector.Config) {
			cfg.Source = func(context.Context) (elector.Clients, error) { return elector.Client(clients.Load()), nil }
		}))
		n.follows(t, "leader")
		require.NoError(t, n.Withdraw(etcdtest.Context(t), nil))
		n.follows(t, "leader")
		clients.Store(cli)
		_ = first.Close()
		n.becomes(t, elector.Unknown)
		n.follows(t, "leader")
	})
}
