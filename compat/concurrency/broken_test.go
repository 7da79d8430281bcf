package concurrency_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Wrong: a resignation that has failed may have its delete on the way. A later campaign of
// the session takes that key for its own and leads with it; then the delete lands (fault 1,
// in the drop-in). slot.resign dooms nothing.
//
// Proposed: resign dooms the token when its outcome is unknown, as removeDoomed does, so that
// enter removes it first and enters anew.
func TestBrokenLateResignationEndsALaterTenure(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	kv := newLateKV(cli.KV)
	kv.after.Store(1) // the registration
	cli.KV = kv
	s := session(t, cli)
	e := concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(within(t), "v"))
	giving, cancel := context.WithCancel(within(t))
	go func() { <-kv.held; cancel() }()
	require.Equal(t, context.Canceled, e.Resign(giving))
	require.NoError(t, e.Campaign(within(t), "v"))
	close(kv.let)
	<-kv.sent
	require.EqualValues(t, 1, count(t, c.Client(t), t.Name()+"/"), "its own past has ended the tenure")
	require.NoError(t, e.Proclaim(within(t), "w"))
	require.NoError(t, s.Ctx().Err())
}

// Wrong: the same with a mutex, where it is worse: two sessions hold it, and the first one
// is not told, for nobody watches the key of a mutex that is locked.
//
// Proposed: as above.
func TestBrokenLateUnlockUnlocksALaterLock(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	kv := newLateKV(cli.KV)
	kv.after.Store(1) // the registration
	cli.KV = kv
	m := concurrency.NewMutex(session(t, cli), t.Name())
	require.NoError(t, m.Lock(within(t)))
	giving, cancel := context.WithCancel(within(t))
	go func() { <-kv.held; cancel() }()
	require.Equal(t, context.Canceled, m.Unlock(giving))
	require.NoError(t, m.Lock(within(t)))
	close(kv.let)
	<-kv.sent
	other := concurrency.NewMutex(session(t, c.Client(t)), t.Name())
	require.Equal(t, concurrency.ErrLocked, other.TryLock(within(t)), "two sessions hold the mutex")
}

// Wrong: what is doomed is remembered for the session and not for the lease (fault 6, in the
// drop-in): a session that takes the lease up adopts a key whose removal is on its way.
//
// Proposed: keep doomed in internal/claims' memory of the lease, as package election does.
func TestBrokenLateRemovalEndsTheTenureOfASessionThatTookTheLeaseUp(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	elder := concurrency.NewElection(session(t, c.Client(t)), t.Name())
	require.NoError(t, elder.Campaign(within(t), "elder"))
	cli := c.Client(t)
	kv := newLateKV(cli.KV)
	kv.after.Store(1) // the registration
	cli.KV = kv
	s := session(t, cli)
	e := concurrency.NewElection(s, t.Name())
	given, cancel := context.WithCancel(within(t))
	waiting := make(chan error, 1)
	go func() { waiting <- e.Campaign(given, "v") }()
	eventually(t, func() bool { return count(t, c.Client(t), t.Name()+"/") == 2 }, "it is not in the line")
	cancel()
	<-kv.held
	require.Equal(t, context.Canceled, take(t, waiting, "the campaign that is given up"))
	s.Orphan()
	require.NoError(t, elder.Resign(within(t)))
	other, err := concurrency.NewSession(c.Client(t), concurrency.WithLease(s.Lease()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	f := concurrency.NewElection(other, t.Name())
	require.NoError(t, f.Campaign(within(t), "v"))
	close(kv.let)
	<-kv.sent
	require.EqualValues(t, 1, count(t, c.Client(t), t.Name()+"/"), "the past of the lease has ended the tenure")
}

// Wrong: enter removes a doomed life that was a registration of unknown outcome, and does
// not account for it; then its own life is the latest that is accounted for, so that the
// sweep cannot account for the doomed one any more either. One registration stays owed for
// two minutes, and the sweep takes the key of another session of the same lease for it:
// a key of another holder is removed, a leader's.
//
// Proposed: enter calls paid for what it removes, in place of the lines that adopting did
// before.
func TestBrokenSweepTakesTheKeyOfAnotherSession(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	var n, refused atomic.Int64
	var deny atomic.Bool
	lost := make(chan struct{})
	cli.KV = etcdtest.WithTxns(cli.KV, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		registration := len(txn.Then) > 0 && txn.Then[0].IsPut()
		switch {
		case registration && n.Add(1) == 1: // arrives, and its reply is lost
			_, _ = txn.Commit(context.Background())
			close(lost)
			<-txn.Context.Done()
			return nil, txn.Context.Err()
		case registration:
			deny.Store(false) // the turn is the campaign's now
		case deny.Load():
			refused.Add(1)
			return nil, rpctypes.ErrPermissionDenied
		}
		return txn.Commit(txn.Context)
	})
	deny.Store(true)
	s := session(t, cli)
	e := concurrency.NewElection(s, t.Name())
	given, cancel := context.WithCancel(within(t))
	go func() { <-lost; cancel() }()
	require.Equal(t, context.Canceled, e.Campaign(given, "v"))
	eventually(t, func() bool { return refused.Load() >= 2 }, "purged and swept")
	require.NoError(t, e.Campaign(within(t), "v"))
	require.NoError(t, e.Resign(within(t)))
	require.Zero(t, count(t, c.Client(t), t.Name()+"/"))

	other, err := concurrency.NewSession(c.Client(t), concurrency.WithLease(s.Lease()))
	require.NoError(t, err)
	t.Cleanup(other.Orphan)
	f := concurrency.NewElection(other, t.Name())
	require.NoError(t, f.Campaign(within(t), "v"))
	time.Sleep(3 * time.Second)
	require.EqualValues(t, 1, count(t, c.Client(t), t.Name()+"/"), "the leader's key was swept")
	require.NoError(t, other.Ctx().Err())
}
