package concurrency_test

import (
	"context"
	"errors"
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

// lateKV holds back the first transaction after a number of others until it is released; its sender
// receives no reply.
type lateKV struct {
	clientv3.KV
	after atomic.Int64  // the number of transactions before it
	held  chan struct{} // closed when it is held back
	let   chan struct{} // closed to release it
	sent  chan error    // its result
	// looked counts the completed reads with which watches begin.
	looked atomic.Int64
	rec    etcdtest.Recorder // of the client
}

// lateSession returns a session of a client with a lateKV, and another client.
func lateSession(t *testing.T, after int64) (s *concurrency.Session, kv *lateKV, other *clientv3.Client) {
	t.Helper()
	c := etcdtest.Shared(t)
	kv = &lateKV{held: make(chan struct{}), let: make(chan struct{}), sent: make(chan error, 1)}
	cli := c.Client(t, kv.rec.Attach)
	kv.KV = etcdtest.WithTxns(cli.KV, kv.commit)
	kv.after.Store(after)
	cli.KV = kv
	return session(t, cli), kv, c.Client(t)
}

// givenUp calls f with a context that ends when the request is held back.
func (kv *lateKV) givenUp(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	go func() { <-kv.held; cancel() }()
	require.Equal(t, context.Canceled, f(ctx))
}

// arrives releases the request, whose result must be one of those.
func (kv *lateKV) arrives(t *testing.T, results ...error) {
	t.Helper()
	close(kv.let)
	require.Contains(t, results, etcdtest.Take(t, kv.sent, "the late request"))
}

func (kv *lateKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, err := kv.KV.Do(ctx, op)
	kv.looked.Add(1)
	return resp, err
}

func (kv *lateKV) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	if kv.after.Add(-1) != -1 {
		return t.Commit(t.Context)
	}
	close(kv.held)
	go func() {
		<-kv.let
		resp, err := t.Commit(context.Background())
		if err == nil && !resp.Succeeded {
			err = errRefused
		}
		kv.sent <- err
	}()
	<-t.Context.Done()
	return nil, t.Context.Err()
}

// errRefused is the result of a transaction whose comparison was false.
var errRefused = errors.New("the comparison was false")

// A campaign of a leader proclaims its value, and repeats the request if there is no reply. An
// attempt that it has given up does not replace a value that was proclaimed since.
func TestLateProclaim(t *testing.T) {
	t.Parallel()
	s, kv, _ := lateSession(t, 2) // the registration, and that of the second campaign, which finds the key
	ctx := etcdtest.Context(t)
	e := concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(ctx, "one"))
	require.NoError(t, e.Campaign(ctx, "two"))
	require.NoError(t, e.Proclaim(ctx, "three"))
	kv.arrives(t, errRefused)
	resp, err := e.Leader(ctx)
	require.NoError(t, err)
	require.Equal(t, "three", string(resp.Kvs[0].Value))
}

// A registration that arrives long after its campaign or lock was given up leaves no orphaned key,
// however late it arrives, and however often the key was used since.
func TestLateRegistration(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(s *concurrency.Session, pfx string) (stand, leave func(context.Context) error){
		"election": func(s *concurrency.Session, pfx string) (stand, leave func(context.Context) error) {
			e := concurrency.NewElection(s, pfx)
			return func(ctx context.Context) error { return e.Campaign(ctx, "v") }, e.Resign
		},
		"mutex": func(s *concurrency.Session, pfx string) (stand, leave func(context.Context) error) {
			m := concurrency.NewMutex(s, pfx)
			return m.Lock, m.Unlock
		},
		"mutex, tried": func(s *concurrency.Session, pfx string) (stand, leave func(context.Context) error) {
			m := concurrency.NewMutex(s, pfx)
			return m.TryLock, m.Unlock
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, kv, cli := lateSession(t, 0)
			stand, leave := use(s, t.Name())
			kv.givenUp(t, stand)
			require.NoError(t, stand(etcdtest.Context(t)), "the key is of no use any more")
			require.EqualValues(t, 1, count(t, cli, t.Name()+"/"), "it was swept under its holder")
			require.NoError(t, leave(etcdtest.Context(t)))
			require.Zero(t, count(t, cli, t.Name()+"/"))
			kv.arrives(t, nil)
			etcdtest.Eventually(t, func() bool { return count(t, cli, t.Name()+"/") == 0 }, "a ghost is in the line")
			require.NoError(t, s.Ctx().Err())
		})
	}
}

// slowWatcher delivers no change before let is closed.
type slowWatcher struct {
	clientv3.Watcher
	let chan struct{}
}

func (w *slowWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	from, to := w.Watcher.Watch(ctx, key, opts...), make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		for resp := range from {
			if len(resp.Events) > 0 {
				select {
				case <-w.let:
				case <-ctx.Done():
				}
			}
			select {
			case to <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return to
}

// A key was registered and resigned, and its events arrive so late that no call uses the key any
// more. The background clean-up must not take them for the late registration: that is removed when
// it arrives.
//
// The test fails if the watch for late registrations continues while the session campaigns, and
// then reports the key that was resigned.
func TestLateRegistrationBehindASlowWatch(t *testing.T) {
	t.Parallel()
	watcher := &slowWatcher{let: make(chan struct{})}
	s, kv, cli := lateSession(t, 0)
	watcher.Watcher = s.Client().Watcher
	s.Client().Watcher = watcher
	e := concurrency.NewElection(s, t.Name())
	campaign := func(ctx context.Context) error { return e.Campaign(ctx, "v") }
	kv.givenUp(t, campaign)
	etcdtest.Eventually(t, func() bool { return kv.looked.Load() > 0 }, "the sweep does not look")
	require.NoError(t, campaign(etcdtest.Context(t)))
	require.NoError(t, e.Resign(etcdtest.Context(t)))
	close(watcher.let)
	kv.arrives(t, nil)
	etcdtest.Eventually(t, func() bool { return count(t, cli, t.Name()+"/") == 0 }, "a ghost is in the line")
}

// removing returns an election whose campaign, behind elder, was given up, and whose key is to be
// deleted by the request that is held back.
func removing(t *testing.T) (s *concurrency.Session, e, elder *concurrency.Election, kv *lateKV, cli *clientv3.Client) {
	t.Helper()
	s, kv, cli = lateSession(t, 1) // the registration
	elder = concurrency.NewElection(session(t, cli), t.Name())
	require.NoError(t, elder.Campaign(etcdtest.Context(t), "elder"))
	e = concurrency.NewElection(s, t.Name())
	given, cancel := context.WithCancel(etcdtest.Context(t))
	waiting := etcdtest.Go(func() error { return e.Campaign(given, "v") })
	// It has received the answer to its registration.
	etcdtest.Eventually(t, func() bool { return len(kv.rec.Placed()) > 0 }, "it does not wait for the elder")
	require.EqualValues(t, 2, count(t, cli, t.Name()+"/"))
	cancel()
	<-kv.held
	require.Equal(t, context.Canceled, etcdtest.Take(t, waiting, "the campaign that is given up"))
	return s, e, elder, kv, cli
}

// Regression 41: a campaign is given up, and the request that deletes its key is held back. The
// next campaign of the session must not lead with that key.
//
// The test fails if a key that is to be deleted is adopted.
func TestLateRemovalEndsNoLaterTenure(t *testing.T) {
	t.Parallel()
	s, e, elder, kv, cli := removing(t)
	before := revision(t, cli, keyOf(s, t.Name()))
	waiting := etcdtest.Go(func() error { return e.Campaign(etcdtest.Context(t), "v") })
	etcdtest.Eventually(t, func() bool { return revision(t, cli, keyOf(s, t.Name())) > before }, "it adopts what is being removed")
	require.NoError(t, elder.Resign(etcdtest.Context(t)))
	require.NoError(t, etcdtest.Take(t, waiting, "the win"))
	kv.arrives(t, errRefused)
	require.NoError(t, e.Proclaim(etcdtest.Context(t), "w"))
	require.NoError(t, s.Ctx().Err())
}

// Regression 45: another session resumes the lease while the deletion of one of its keys is in
// flight.
//
// The test fails if doomed tokens are kept for the session and not for the lease.
func TestLateRemovalEndsNoTenureOfTheLease(t *testing.T) {
	t.Parallel()
	s, _, elder, kv, cli := removing(t)
	s.Orphan()
	require.NoError(t, elder.Resign(etcdtest.Context(t)))
	f := concurrency.NewElection(session(t, cli, concurrency.WithLease(s.Lease())), t.Name())
	require.NoError(t, f.Campaign(etcdtest.Context(t), "v"))
	kv.arrives(t, nil, errRefused)
	require.EqualValues(t, 1, count(t, cli, t.Name()+"/"), "the past of the lease has ended the tenure")
}

// revision returns the create revision of a key, 0 if there is none.
func revision(t *testing.T, cli *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := cli.Get(etcdtest.Context(t), key)
	require.NoError(t, err)
	if len(resp.Kvs) == 0 {
		return 0
	}
	return resp.Kvs[0].CreateRevision
}

// Keys that are no candidates', and a key that was put directly with the name of the session's key.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	ctx := etcdtest.Context(t)
	name := t.Name()
	for _, key := range []string{"/", "/a/b", "/00", "/FF", "/-1", "/zz", "/inner/1a"} {
		require.NoError(t, etcdtest.Err(cli.Put(ctx, name+key, "foreign")))
	}
	one, other := session(t, cli), session(t, cli)
	e := concurrency.NewElection(one, name)
	_, err := e.Leader(ctx)
	require.Equal(t, concurrency.ErrElectionNoLeader, err)
	m, waiting := concurrency.NewMutex(one, name), concurrency.NewMutex(other, name)
	require.NoError(t, m.TryLock(ctx))
	require.Equal(t, concurrency.ErrLocked, waiting.TryLock(ctx))
	require.EqualValues(t, 8, count(t, cli, name+"/"), "TryLock has left its key")
	require.NoError(t, m.Unlock(ctx))
	values := e.Observe(ctx)
	require.NoError(t, e.Campaign(ctx, "leads"))
	require.Equal(t, "leads", string(etcdtest.Take(t, values, "the leader").Kvs[0].Value))
	resp, err := e.Leader(ctx)
	require.NoError(t, err)
	require.Equal(t, e.Key(), string(resp.Kvs[0].Key))
	require.Len(t, resp.Kvs, 1)
	require.NoError(t, e.Resign(ctx))

	byHand := concurrency.NewElection(one, name+"-hand")
	require.NoError(t, etcdtest.Err(cli.Put(ctx, keyOf(one, name+"-hand"), "without a lease")))
	err = byHand.Campaign(ctx, "v")
	require.ErrorIs(t, err, concurrency.ErrElectionNotLeader)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.Empty(t, byHand.Key())
}

// Regression 41: a resignation has failed, and its delete request is in flight. The next campaign
// of the session enters the queue anew.
//
// The test fails if a resignation does not mark its token as doomed.
func TestLateResignationEndsNoLaterTenure(t *testing.T) {
	t.Parallel()
	s, kv, cli := lateSession(t, 1) // the registration
	e := concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
	kv.givenUp(t, e.Resign)
	require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
	kv.arrives(t, nil, errRefused)
	require.EqualValues(t, 1, count(t, cli, t.Name()+"/"), "its own past has ended the tenure")
	require.NoError(t, e.Proclaim(etcdtest.Context(t), "w"))
	require.NoError(t, s.Ctx().Err())
}

// Regression 41: the same for a mutex, where two sessions would hold it without noticing.
func TestLateUnlockUnlocksNoLaterLock(t *testing.T) {
	t.Parallel()
	s, kv, cli := lateSession(t, 1) // the registration
	m := concurrency.NewMutex(s, t.Name())
	require.NoError(t, m.Lock(etcdtest.Context(t)))
	kv.givenUp(t, m.Unlock)
	require.NoError(t, m.Lock(etcdtest.Context(t)))
	kv.arrives(t, nil, errRefused)
	other := concurrency.NewMutex(session(t, cli), t.Name())
	require.Equal(t, concurrency.ErrLocked, other.TryLock(etcdtest.Context(t)), "two sessions hold the mutex")
}

// A registration of unknown outcome is removed by the next campaign, and then counts as done: the
// background clean-up does not take the key of another session of the lease for it.
//
// The test fails if the registration does not count as done.
func TestSweepLeavesTheKeyOfAnotherSession(t *testing.T) {
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
		case deny.Load():
			refused.Add(1)
			return nil, rpctypes.ErrPermissionDenied
		}
		return txn.Commit(txn.Context)
	})
	deny.Store(true)
	s := session(t, cli)
	e := concurrency.NewElection(s, t.Name())
	given, cancel := context.WithCancel(etcdtest.Context(t))
	go func() { <-lost; cancel() }()
	require.Equal(t, context.Canceled, e.Campaign(given, "v"))
	etcdtest.Eventually(t, func() bool { return refused.Load() >= 2 }, "it is not removed")
	deny.Store(false)
	require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
	require.NoError(t, e.Resign(etcdtest.Context(t)))
	require.Zero(t, count(t, c.Client(t), t.Name()+"/"))

	other, err := concurrency.NewSession(c.Client(t), concurrency.WithLease(s.Lease()))
	require.NoError(t, err)
	t.Cleanup(other.Orphan)
	f := concurrency.NewElection(other, t.Name())
	require.NoError(t, f.Campaign(etcdtest.Context(t), "v"))
	time.Sleep(3 * time.Second)
	require.EqualValues(t, 1, count(t, c.Client(t), t.Name()+"/"), "the leader's key was swept")
	require.NoError(t, other.Ctx().Err())
}

// Regression 45: a session is closed, and its revocation is in flight. A session that resumes the
// lease is done, as with an expired lease.
//
// The test fails if Close does not record its request.
func TestLateRevocationEndsNoLaterSession(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	held := &heldRevocation{Lease: cli.Lease, let: make(chan struct{}), sent: make(chan struct{})}
	cli.Lease = held
	ctx, cancel := context.WithCancel(context.Background())
	s, err := concurrency.NewSession(cli, concurrency.WithContext(ctx))
	require.NoError(t, err)
	held.given = cancel
	require.Error(t, s.Close())
	other, err := concurrency.NewSession(c.Client(t), concurrency.WithLease(s.Lease()))
	require.NoError(t, err)
	require.Error(t, other.Ctx().Err(), "a lease that is about to be revoked is taken up")
	close(held.let)
	<-held.sent
}

// heldRevocation holds revocations back, and their sender gives up.
type heldRevocation struct {
	clientv3.Lease
	given     context.CancelFunc
	let, sent chan struct{}
}

func (h *heldRevocation) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	go func() {
		<-h.let
		_, _ = h.Lease.Revoke(context.Background(), id)
		close(h.sent)
	}()
	h.given()
	<-ctx.Done()
	return nil, ctx.Err()
}
