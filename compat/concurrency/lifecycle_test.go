package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func session(t testing.TB, cli *clientv3.Client, opts ...concurrency.SessionOption) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(cli, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}

// count returns the number of keys under a prefix.
func count(t testing.TB, cli *clientv3.Client, prefix string) int64 {
	t.Helper()
	resp, err := cli.Get(etcdtest.Context(t), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	return resp.Count
}

// goroutines waits until there are no more goroutines than wanted.
func goroutines(t testing.TB, wanted int) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { return runtime.NumGoroutine() <= wanted }, fmt.Sprintf("more than %d goroutines", wanted))
}

// Whatever a session did, nothing of it is left when it is closed; 60 sessions leave no more than
// 20.
func TestNothingIsLeft(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	before := 0
	for i := range 60 {
		ctx := etcdtest.Context(t)
		s, err := concurrency.NewSession(cli, concurrency.WithTTL(60))
		require.NoError(t, err)
		e := concurrency.NewElection(s, t.Name())
		watching, stop := context.WithCancel(ctx)
		values := e.Observe(watching)
		require.NoError(t, e.Campaign(ctx, "v"))
		<-values
		m := concurrency.NewMutex(s, t.Name()+"-m")
		require.NoError(t, m.Lock(ctx))
		other, err := concurrency.NewSession(cli, concurrency.WithTTL(60), concurrency.WithLease(s.Lease()))
		require.NoError(t, err)
		other.Orphan()
		stop()
		if i%2 == 0 {
			require.NoError(t, m.Unlock(ctx))
			require.NoError(t, e.Resign(ctx))
		}
		require.NoError(t, s.Close())
		if i == 20 {
			before = runtime.NumGoroutine()
		}
	}
	goroutines(t, before+5)
	require.Zero(t, count(t, cli, t.Name()))
}

// One session may lock any number of names, one after another, and keeps no state of them.
func TestManyNames(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	s := session(t, cli)
	warm := func(n int) {
		for i := range n {
			ctx := etcdtest.Context(t) // one for each name
			m := concurrency.NewMutex(s, fmt.Sprintf("%s-%d", t.Name(), i))
			require.NoError(t, m.Lock(ctx))
			require.NoError(t, m.Unlock(ctx))
			e := concurrency.NewElection(s, fmt.Sprintf("%s-%d", t.Name(), i))
			require.NoError(t, e.Campaign(ctx, ""))
			require.NoError(t, e.Resign(ctx))
		}
	}
	warm(10)
	before := runtime.NumGoroutine()
	warm(100)
	goroutines(t, before+5)
	etcdtest.Eventually(t, func() bool { return concurrency.Slots(s) == 0 }, "slots are left")
}

// Handles may be shared: any number of goroutines campaign, proclaim, resign, lock, unlock and read
// with one session, one election and one mutex.
func TestConcurrentSafe(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	s := session(t, cli)
	e, m := concurrency.NewElection(s, t.Name()), concurrency.NewMutex(s, t.Name()+"-m")
	ctx := etcdtest.Context(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+i)*5*time.Millisecond)
				_ = e.Campaign(short, fmt.Sprint(i)) // any of them may be too late, or resigned
				_ = e.Proclaim(short, "again")
				_, _ = e.Leader(short)
				_, _, _ = e.Key(), e.Rev(), e.Header()
				_ = m.Lock(short)
				_, _, _ = m.Key(), m.IsOwner(), m.Header()
				_ = m.Unlock(short)
				_ = m.TryLock(short)
				_ = e.Resign(ctx)
				cancel()
			}
		})
	}
	all.Wait()
	require.NoError(t, e.Resign(ctx))
	if err := m.Unlock(ctx); err != nil {
		require.ErrorIs(t, err, concurrency.ErrLockReleased)
	}
	etcdtest.Eventually(t, func() bool { return count(t, cli, t.Name()) == 0 }, "keys are left on a session that lives")
	require.NoError(t, e.Campaign(ctx, "after all"))
	require.NoError(t, m.Lock(ctx))
	require.NoError(t, s.Close())
}

// Two campaigns of a session wait, and etcd refuses what they need next. Their key is deleted, and both
// wait for that before they return the refusal.
//
// The test fails if only the last one to return waits.
func TestRefusedTogether(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	ctx := etcdtest.Context(t)
	elder := concurrency.NewElection(session(t, c.Client(t)), t.Name())
	require.NoError(t, elder.Campaign(ctx, "elder"))
	var refuse, deleted atomic.Bool
	var joined atomic.Int64
	returned := make(chan error, 2)
	cli := c.Client(t)
	cli.KV = etcdtest.WithTxns(cli.KV, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		switch {
		case len(txn.Then) == 1 && txn.Then[0].IsDelete():
			select {
			case err := <-returned: // too early
				returned <- err
			case <-time.After(200 * time.Millisecond):
				deleted.Store(true)
			}
		default:
			defer joined.Add(1)
		}
		return txn.Commit(txn.Context)
	})
	cli.KV = refusedReads{cli.KV, &refuse}
	s := session(t, cli)
	e := concurrency.NewElection(s, t.Name())
	campaign := func() { returned <- e.Campaign(ctx, "v") }
	go campaign()
	etcdtest.Eventually(t, func() bool { return revision(t, c.Client(t), keyOf(s, t.Name())) > 0 }, "it does not wait")
	go campaign()
	etcdtest.Eventually(t, func() bool { return joined.Load() == 2 }, "the other one does not wait")
	refuse.Store(true)
	require.NoError(t, elder.Resign(ctx))
	require.Equal(t, rpctypes.ErrPermissionDenied, etcdtest.Take(t, returned, "the refusal"))
	require.True(t, deleted.Load(), "a campaign has returned, and its key is not deleted")
	require.Equal(t, rpctypes.ErrPermissionDenied, etcdtest.Take(t, returned, "the refusal"))
}

// refusedReads refuses reads once refuse is set.
type refusedReads struct {
	clientv3.KV
	refuse *atomic.Bool
}

func (kv refusedReads) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if kv.refuse.Load() {
		return clientv3.OpResponse{}, rpctypes.ErrPermissionDenied
	}
	return kv.KV.Do(ctx, op)
}

// A session is closed while calls wait, and while others begin. All of them end, and each later call
// learns that the lease does not exist.
//
// The test fails, under the race detector or with a panic, if Close waits for goroutines that calls
// may start meanwhile.
func TestCloseWhileCallsWaitAndBegin(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	ctx := etcdtest.Context(t)
	require.NoError(t, concurrency.NewElection(session(t, cli), t.Name()).Campaign(ctx, "v"))
	for range 50 {
		s, err := concurrency.NewSession(cli)
		require.NoError(t, err)
		var calls sync.WaitGroup
		for i := range 8 {
			call := concurrency.NewMutex(s, t.Name()).Lock
			if i%2 == 0 {
				call = func(ctx context.Context) error { return concurrency.NewElection(s, t.Name()).Campaign(ctx, "w") }
			}
			calls.Go(func() {
				for !errors.Is(call(ctx), rpctypes.ErrLeaseNotFound) {
					assertTrue(t, ctx.Err() == nil, "the calls do not end")
				}
			})
		}
		etcdtest.Eventually(t, func() bool { return revision(t, cli, keyOf(s, t.Name())) > 0 }, "nothing waits")
		require.NoError(t, s.Close())
		calls.Wait()
	}
}

// A call begins at the moment at which the session ends, while another call registers the same key.
// Both end.
//
// The test fails, with a panic, if the call that begins takes the state machine from the other one.
func TestCallAtTheEndOfTheSession(t *testing.T) {
	t.Parallel()
	s, kv, _ := lateSession(t, 0)
	e := concurrency.NewElection(s, t.Name())
	first := etcdtest.Go(func() error { return e.Campaign(etcdtest.Context(t), "v") })
	etcdtest.Take(t, kv.held, "the registration")
	concurrency.Ending(s, func() {
		require.ErrorIs(t, e.Campaign(etcdtest.Context(t), "w"), concurrency.ErrElectionNotLeader)
	})
	require.ErrorIs(t, etcdtest.Take(t, first, "the end of the campaign"), concurrency.ErrElectionNotLeader)
	kv.arrives(t, nil)
}

// The context of a session has the reason of its end, and Done is closed by then.
func TestCause(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for name, c := range map[string]struct {
		end  func(s *concurrency.Session, cancel context.CancelFunc)
		want error
	}{
		"orphaned": {func(s *concurrency.Session, _ context.CancelFunc) { s.Orphan() }, eldest.ErrClosed},
		"revoked": {func(s *concurrency.Session, _ context.CancelFunc) {
			require.NoError(t, etcdtest.Err(cli.Revoke(context.Background(), s.Lease())))
		}, eldest.ErrSessionLost},
		"deposed": {func(s *concurrency.Session, _ context.CancelFunc) {
			e := concurrency.NewElection(s, "TestCause")
			require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
			require.NoError(t, etcdtest.Err(cli.Delete(context.Background(), e.Key())))
		}, eldest.ErrDeposed},
		"its context": {func(_ *concurrency.Session, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s := session(t, cli, concurrency.WithTTL(10), concurrency.WithContext(ctx))
			c.end(s, cancel)
			etcdtest.Take(t, s.Done(), "the end")
			require.ErrorIs(t, s.Ctx().Err(), context.Canceled)
			require.ErrorIs(t, context.Cause(s.Ctx()), c.want)
		})
	}
}

// A program that waits for the end of the context finds Done closed.
func TestDoneIsClosedWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for range 20 {
		s := session(t, cli, concurrency.WithTTL(60))
		e := concurrency.NewElection(s, t.Name())
		require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
		deleted, err := cli.Delete(etcdtest.Context(t), e.Key())
		require.NoError(t, err)
		require.EqualValues(t, 1, deleted.Deleted)
		etcdtest.Take(t, s.Ctx().Done(), "the end")
		select {
		case <-s.Done():
		default:
			require.FailNow(t, "the context has ended, and Done is not closed")
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, etcdtest.Err(concurrency.NewSession(nil)), eldest.ErrInvalid)
	var none context.Context
	require.ErrorIs(t, etcdtest.Err(concurrency.NewSession(etcdtest.Shared(t).Client(t), concurrency.WithContext(none))), eldest.ErrInvalid)
	closed, err := etcdtest.Shared(t).Dial()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = concurrency.NewSession(closed)
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}

// A client that was assembled from parts may have no Cluster that confirms renewals. It works as
// with etcd's package: opening a session, resuming its lease, and leading.
func TestClientWithoutACluster(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	parts := clientv3.NewCtxClient(t.Context())
	parts.KV, parts.Watcher, parts.Lease = cli.KV, cli.Watcher, cli.Lease
	first := session(t, parts, concurrency.WithTTL(60))
	first.Orphan()
	s := session(t, parts, concurrency.WithTTL(60), concurrency.WithLease(first.Lease()))
	require.NoError(t, s.Ctx().Err(), "the lease was not taken up")
	e := concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
	require.NoError(t, e.Resign(etcdtest.Context(t)))
}
