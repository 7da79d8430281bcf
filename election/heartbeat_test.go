package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// beating gives a participant heartbeats. Its TTL is the quiet one: nobody waits for it.
func beating(l *lease.Config, _ *election.Config) {
	l.Heartbeat = lease.Heartbeat{Timeout: lease.MinHeartbeat}
}

// beats counts the keys of a leader's heartbeats.
func beats(t *testing.T, cli *clientv3.Client, l *election.Leadership) int {
	t.Helper()
	id, err := keys.Parse(l.Election(), l.Key())
	require.NoError(t, err)
	resp, err := cli.Get(etcdtest.Context(t), keys.Beat(id))
	require.NoError(t, err)
	return int(resp.Count)
}

// beatKV is a client whose beats, and other writes, a test can tamper with.
type beatKV struct {
	clientv3.KV
	put func(put func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error)
	txn func(txn clientv3.Txn) clientv3.Txn
}

func (k beatKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	put := func() (*clientv3.PutResponse, error) { return k.KV.Put(ctx, key, value, opts...) }
	if k.put == nil {
		return put()
	}
	return k.put(put)
}

func (k beatKV) Txn(ctx context.Context) clientv3.Txn {
	if k.txn == nil {
		return k.KV.Txn(ctx)
	}
	return k.txn(k.KV.Txn(ctx))
}

// tampered gives a candidate a client of a test's.
func tampered(kv beatKV) electiontest.Change {
	return func(_ *lease.Config, e *election.Config) {
		kv.KV = e.KV
		e.KV = kv
	}
}

// Whoever may not write the key of heartbeats stands all the same, and says so once: it leads by its lease.
func TestHeartbeatsThatAreNotPermitted(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	told := make(chan lease.BeatEvent, 99)
	a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) {
		l.Hooks.Beat = func(e lease.BeatEvent) { told <- e }
	}, tampered(beatKV{put: func(func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
		return nil, rpctypes.ErrPermissionDenied
	}}))
	l := a.Lead(t)
	e := etcdtest.Take(t, told, "the news")
	require.ErrorIs(t, e.Err, rpctypes.ErrPermissionDenied)
	require.True(t, e.Mute)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	time.Sleep(2 * lease.MinHeartbeat)
	require.NoError(t, l.Err())
	require.True(t, l.Holds(lease.MinHeartbeat), "for as long as the lease is certain")
	require.Empty(t, waits, "who has never beaten is not evicted")
	require.Empty(t, told, "once")
	require.NoError(t, l.Resign(etcdtest.Context(t)))
	electiontest.Wins(t, waits)
}

// Beats whose replies are lost count for nothing: nobody leads by them, and who leads is suspended in
// time to be evicted by one who has seen them.
//
// Fails when the first win does not wait for an acknowledgement, and when a beat counts without one.
func TestHeartbeatsWithLostReplies(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var lose atomic.Bool
	var kept atomic.Int32
	lose.Store(true)
	a := electiontest.Join(t, cli, name, beating, tampered(beatKV{put: func(put func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
		resp, err := put()
		if lose.Load() {
			return nil, context.DeadlineExceeded
		}
		kept.Add(1)
		return resp, err
	}}))
	first := a.Queue(t)
	etcdtest.Never(t, func() bool { return len(first) > 0 }, lease.MinHeartbeat, "a win without an acknowledgement")
	lose.Store(false)
	l := electiontest.Wins(t, first)
	require.Positive(t, kept.Load())

	lose.Store(true) // the beats still arrive: nobody evicts, and nobody leads
	<-l.Done()
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	etcdtest.Never(t, func() bool { return len(waits) > 0 }, 2*lease.MinHeartbeat, "an eviction of one whose beats arrive")
	lose.Store(false)
	next, err := a.Candidate.Await(etcdtest.Context(t))
	require.NoError(t, err, "it does not go on")
	require.Equal(t, l.Token(), next.Token(), "another tenure")
}

// Nothing is sent for heartbeats without them.
func TestWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name)
	l := a.Lead(t)
	require.Zero(t, beats(t, cli, l))
}

// Whoever resumes a lease cannot know whether it was beaten for: a refusal does not make it lead by the
// lease alone, and it is lost: nobody could lead, and where nothing was ever taken, nobody evict it.
func TestHeartbeatsOfAResumedLease(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name, beating)
	l := a.Lead(t)
	a.Session.Abandon()
	session, err := lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli, Heartbeat: lease.Heartbeat{Timeout: lease.MinHeartbeat}}, a.Session.ID())
	require.NoError(t, err)
	b := electiontest.Join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.Session = session },
		tampered(beatKV{put: func(func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
			return nil, rpctypes.ErrPermissionDenied
		}}))
	waits := b.Queue(t)
	electiontest.Fails(t, waits, eldest.ErrSessionLost, rpctypes.ErrPermissionDenied)
	etcdtest.Eventually(t, func() bool { return len(electiontest.Keys(t, cli, l.Election())) == 0 }, "the revocation of its lease")
}

// The proof is of no revision from before the beat with which the stretch began: between the two the candidate may
// have been evicted.
func TestHeartbeatsBeforeTheProof(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	asked := make(chan int64, 99)
	a := electiontest.Join(t, cli, name, beating)
	b := electiontest.Join(t, cli, name, beating, func(_ *lease.Config, e *election.Config) {
		e.Queue = askedQueue{txn.ByPointer{}, asked}
	})
	la := a.Lead(t)
	waits := b.Queue(t)
	require.NoError(t, la.Resign(etcdtest.Context(t)))
	lb := electiontest.Wins(t, waits)
	id, err := keys.Parse(name, lb.Key())
	require.NoError(t, err)
	resp, err := cli.Get(etcdtest.Context(t), keys.Beat(id))
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	for len(asked) > 0 {
		if at := <-asked; at > 0 {
			require.GreaterOrEqual(t, at, resp.Kvs[0].CreateRevision, "a proof of a past revision")
		}
	}
}

// askedQueue tells at which revisions it was asked.
type askedQueue struct {
	txn.Queue
	at chan int64
}

func (q askedQueue) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Place, at int64) (txn.Place, error) {
	q.at <- at
	return q.Queue.Ahead(ctx, kv, e, p, at)
}

// All candidates of a session with heartbeats have one client: in another namespace there might be beats of an
// earlier life of the lease, which stand still.
func TestHeartbeatsOfOneClient(t *testing.T) {
	t.Parallel()
	cli, name, ctx := etcdtest.Shared(t).Client(t), etcdtest.Election(t), etcdtest.Context(t)
	a := electiontest.Join(t, cli, name, beating)
	a.Lead(t)
	c, err := election.New(election.Config{Election: name + "-2", Session: a.Session, KV: namespace.NewKV(cli, "there/"), Watcher: cli})
	require.NoError(t, err)
	_, err = c.Campaign(ctx)
	require.ErrorIs(t, err, eldest.ErrInvalid, "another client was taken")
	require.ErrorContains(t, err, "client")
}

// An etcd without space refuses heartbeats: nobody leads, and nobody moves.
func TestHeartbeatsWithoutSpace(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name, ctx := cluster.Client(t), etcdtest.Election(t), etcdtest.Context(t)
	a := electiontest.Join(t, cli, name, beating)
	l := a.Lead(t)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	alarm := etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	status, err := cli.Status(ctx, cli.Endpoints()[0])
	require.NoError(t, err)
	alarm.MemberID = status.Header.MemberId
	raw := etcdserverpb.NewMaintenanceClient(cli.ActiveConnection())
	require.NoError(t, etcdtest.Err(raw.Alarm(ctx, &alarm)))
	<-l.Done()
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	etcdtest.Never(t, func() bool { return len(waits) > 0 || electiontest.Keys(t, cli, name)[0] != l.Key() }, 3*lease.MinHeartbeat, "an eviction")
	alarm.Action = etcdserverpb.AlarmRequest_DEACTIVATE
	require.NoError(t, etcdtest.Err(raw.Alarm(ctx, &alarm)))
	next, err := a.Candidate.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, l.Token(), next.Token())
}
