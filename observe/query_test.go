package observe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// promptly calls ask, and calls it again if a response took so long that the request was repeated;
// the record then has only the last call.
func (s *stage) promptly(ask func()) {
	for begun := time.Now().Add(-observe.DefaultTimeout); time.Since(begun) >= observe.DefaultTimeout; {
		s.Rec.Reset()
		begun = time.Now()
		ask()
	}
}

// Row 26, and 15: one range, oldest first, limit 1.
func TestLeaderOfIsOneRange(t *testing.T) {
	s := newStage(t)
	_, err := observe.LeaderOf(s.Ctx, s.Client, s.Election)
	require.ErrorIs(t, err, eldest.ErrNoLeader)
	require.ErrorContains(t, err, s.Election)

	token, _ := s.put(0xb, "b\x00\xff")
	s.put(0xa, "a")
	_, mod := s.put(0xb, "\xff\x00")
	var leader eldest.Leader
	s.promptly(func() { leader, err = observe.LeaderOf(s.Ctx, s.Client, s.Election) })
	require.NoError(t, err)
	require.Equal(t, eldest.Leader{Key: s.key(0xb), Lease: 0xb, Token: token, ModRevision: mod, Value: []byte("\xff\x00")}, leader)

	calls := s.Rec.Calls()
	require.Len(t, calls, 1)
	begin, end := keys.Range(s.Election)
	got := calls[0].Request.(*etcdserverpb.RangeRequest)
	require.Equal(t, (&etcdserverpb.RangeRequest{
		Key: []byte(begin), RangeEnd: []byte(end), Limit: 1,
		SortOrder: etcdserverpb.RangeRequest_ASCEND, SortTarget: etcdserverpb.RangeRequest_CREATE,
	}).String(), got.String())
}

func TestLeaderOfBehindForeignKeys(t *testing.T) {
	s := newStage(t)
	prefix := keys.Prefix(s.Election)
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, prefix+"zzz", "foreign")))
	require.ErrorIs(t, etcdtest.Err(observe.LeaderOf(s.Ctx, s.Client, s.Election)), eldest.ErrNoLeader)
	// In one transaction with another foreign key: the same create revision.
	require.NoError(t, etcdtest.Err(s.Admin.Txn(s.Ctx).Then(clientv3.OpPut(prefix+"00", "foreign"), clientv3.OpPut(s.key(7), "v")).Commit()))
	s.put(8, "younger")
	leader, err := observe.LeaderOf(s.Ctx, s.Client, s.Election)
	require.NoError(t, err)
	require.Equal(t, int64(7), leader.Lease)
	queue, err := observe.Queue(s.Ctx, s.Client, nil, s.Election)
	require.NoError(t, err)
	require.Len(t, queue, 2)
}

// Row 26: the queue, in order, with lease, remaining time and value.
func TestQueue(t *testing.T) {
	s := newStage(t)
	queue, err := observe.Queue(s.Ctx, s.Client, s.Client, s.Election)
	require.NoError(t, err)
	require.Empty(t, queue)

	var leases []clientv3.LeaseID
	for _, ttl := range []int64{30, 60, 90} {
		grant, err := s.Admin.Grant(s.Ctx, ttl)
		require.NoError(t, err)
		leases = append(leases, grant.ID)
	}
	// In neither the order of the keys nor that of the leases.
	for _, i := range []int{2, 0, 1} {
		require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, s.key(int64(leases[i])), string(rune('a'+i)), clientv3.WithLease(leases[i]))))
	}
	s.put(0xdead, "of a lease that does not exist")
	s.promptly(func() { queue, err = observe.Queue(s.Ctx, s.Client, s.Client, s.Election) })
	require.NoError(t, err)
	require.Equal(t, 1, s.Rec.Count("Range"), "read in one request")
	require.Equal(t, 4, s.Rec.Count("LeaseTimeToLive"))
	require.Len(t, queue, 4)
	for i, want := range []struct {
		lease clientv3.LeaseID
		value string
		ttl   time.Duration
	}{{leases[2], "c", 90 * time.Second}, {leases[0], "a", 30 * time.Second}, {leases[1], "b", 60 * time.Second}} {
		require.Equal(t, int64(want.lease), queue[i].Lease)
		require.Equal(t, want.value, string(queue[i].Value))
		require.LessOrEqual(t, queue[i].TTL, want.ttl)
		require.Greater(t, queue[i].TTL, want.ttl-10*time.Second)
	}
	require.Negative(t, queue[3].TTL)
	for i := range queue[1:] {
		require.Greater(t, queue[i+1].Token, queue[i].Token)
	}

	var without []observe.Entry
	var none *clientv3.Client
	s.promptly(func() { without, err = observe.Queue(s.Ctx, s.Client, none, s.Election) })
	require.NoError(t, err)
	require.Equal(t, []string{"Range"}, s.Rec.Methods())
	require.Len(t, without, 4)
	require.Negative(t, without[0].TTL, "not asked for")
	for _, id := range leases {
		require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, id)))
	}
}

func TestInANamespace(t *testing.T) {
	s := newStage(t)
	kv := namespace.NewKV(s.Client, "/prod/")
	o := s.observer(func(cfg *observe.Config) { cfg.KV, cfg.Watcher = kv, namespace.NewWatcher(s.Client, "/prod/") })
	sub := o.Subscribe()
	require.Equal(t, eldest.Nobody, s.next(sub).Kind)
	s.put(1, "outside")
	key := "/prod/" + s.key(2)
	s.Put(key, "inside")
	t.Cleanup(func() { s.Remove(key) })
	require.Equal(t, s.key(2), s.led(sub, 2, "inside").Leader.Key)
	leader, err := observe.LeaderOf(s.Ctx, kv, s.Election)
	require.NoError(t, err)
	require.Equal(t, s.key(2), leader.Key)
}
