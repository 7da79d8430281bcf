package regressions

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// locked is a cluster with authentication, whose user "node" may do what a node of the
// election must, once permit has been called.
type locked struct {
	*etcdtest.Cluster
	root *clientv3.Client
	name string
}

func lock(t *testing.T) *locked {
	t.Helper()
	k := &locked{Cluster: etcdtest.Start(t, etcdtest.Config{}), name: etcdtest.Election(t)}
	cli, ctx := k.Client(t), etcdtest.Context(t)
	for _, user := range []string{"root", "node"} {
		require.NoError(t, etcdtest.Err(cli.UserAdd(ctx, user, "secret")))
		require.NoError(t, etcdtest.Err(cli.RoleAdd(ctx, user)))
		require.NoError(t, etcdtest.Err(cli.UserGrantRole(ctx, user, user)))
	}
	require.NoError(t, etcdtest.Err(cli.AuthEnable(ctx)))
	k.root = k.as(t, "root")
	return k
}

// as returns a client of a user.
func (k *locked) as(t *testing.T, user string) *clientv3.Client {
	t.Helper()
	return k.Client(t, func(cfg *clientv3.Config) { cfg.Username, cfg.Password = user, "secret" })
}

// permit lets nodes stand, and a leader write its one key.
func (k *locked) permit(t *testing.T) {
	t.Helper()
	begin, end := keys.Range(k.name)
	for from, to := range map[string]string{begin: end, "of-" + k.name: ""} {
		require.NoError(t, etcdtest.Err(k.root.RoleGrantPermission(etcdtest.Context(t), "node", from, to, clientv3.PermissionType(clientv3.PermReadWrite))))
	}
}

func (k *locked) forbid(t *testing.T) {
	t.Helper()
	begin, end := keys.Range(k.name)
	require.NoError(t, etcdtest.Err(k.root.RoleRevokePermission(etcdtest.Context(t), "node", begin, end)))
}

// Row 25, permission denied. Elsewhere the loop spins, or gives up in silence. Here the
// status says why, the rounds are held apart, no lease is left by any of them, and the
// node stands when it may.
//
// Fails when a refusal is taken for an outage, or a round for the last one.
func TestRegression25_PermissionDenied(t *testing.T) {
	t.Parallel()
	k := lock(t)
	cli := k.as(t, "node")
	denied := func(s elector.Status) bool { return errors.Is(s.Reason(), rpctypes.ErrPermissionDenied) }
	n := stand(t, cli, k.name, "n", electiontest.UntilTheEnd)
	begin := time.Now()
	n.Until(t, "denied", denied)
	require.Less(t, time.Since(begin), atOnce)
	etcdtest.Eventually(t, func() bool { return n.Rounds.Load() >= 3 }, "it tries again")
	require.Zero(t, n.Calls.Load())
	k.permit(t)
	l := n.Wins(t)
	leases, err := k.root.Leases(etcdtest.Context(t))
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1, "the lease of a round is left")

	// The permission is taken away from a leader, which loses its key beside; then it is
	// given back.
	rounds := n.Rounds.Load()
	k.forbid(t)
	require.ErrorIs(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "of-"+k.name, "")), rpctypes.ErrPermissionDenied)
	require.NoError(t, etcdtest.Err(k.root.Delete(etcdtest.Context(t), l.Key())))
	n.Until(t, "denied", denied)
	require.Less(t, n.Rounds.Load()-rounds, int64(10))
	k.permit(t)
	require.Greater(t, n.Wins(t).Token(), l.Token())
}

// silent sends nothing while it waits, so that what is counted is not its own.
func silent(cfg *elector.Config) {
	cfg.Session.TTL = 10 * time.Minute
	cfg.Candidate.Timeout = 5 * time.Second // nor does a busy machine have it asked again
	cfg.Candidate.Recheck, cfg.Observer.Recheck = -1, -1
}

// Row 27. Somebody leads whose value cannot be read. Elsewhere the loop takes that for a
// failed round: 224 of them a second, and a goroutine is leaked in each. Here the node
// says that it knows of no leader and why, stays in the queue with the key it has, in
// the one round that it began, and leads when the foreigner goes. The foreigner changes
// its value all the time, so that there is something to spin on.
//
// Fails when elector.round.seen makes a value that cannot be read the end of the round.
func TestRegression27_ForeignValue(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	foreigner := c.Client(t)
	granted, err := foreigner.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	theirs := keys.Candidate(name, int64(granted.ID))
	put := func(value string) {
		t.Helper()
		require.NoError(t, etcdtest.Err(foreigner.Put(etcdtest.Context(t), theirs, value, clientv3.WithLease(granted.ID))))
	}
	put("\xff\xff")
	var rec etcdtest.Recorder
	n := stand(t, c.Client(t, rec.Attach), name, "n", electiontest.UntilTheEnd, silent)
	foreign := func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrForeignValue) }
	n.Until(t, "in doubt about a foreign value", foreign)
	var queue []string
	etcdtest.Eventually(t, func() bool {
		queue = queueOf(t, c, name)
		return len(queue) == 2 && n.Rounds.Load() == 1
	}, "it stands in the queue")
	require.Equal(t, theirs, queue[0])
	running, _ := goroutines(t, name)
	require.Positive(t, running, "INVALID: its goroutines cannot be told from others")
	asked := rec.Count()

	const changes = 500
	for i := range changes {
		// What etcdctl writes, what other programs write, and nothing at all.
		put([]string{"candidate", `{"node":"x"}`, "", "\x00", "\x0a\xff\x01", "\x10\x01"}[i%6]) // none names a node
		s := n.Status()
		require.Equal(t, elector.Neither, s.Role(), "%v", s)
	}
	n.Until(t, "in doubt about a foreign value", foreign)
	require.Equal(t, queue, queueOf(t, c, name), "it left its place")
	require.EqualValues(t, 1, n.Rounds.Load(), "it went round and round")
	ours, _ := goroutines(t, name)
	// It may just have begun to stand when they were counted first.
	require.Less(t, ours, running+changes/10, "goroutines are leaked")
	require.Less(t, rec.Count()-asked, changes/10, "it asks at each change")

	// A value that can be read is followed, and one that cannot is not, again.
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "other", Address: "other:1", TTL: time.Minute})
	require.NoError(t, err)
	put(string(value))
	s := n.Becomes(t, elector.Following)
	leader, _ := s.Leader()
	require.Equal(t, "other", leader.NodeID)
	require.Equal(t, theirs, leader.Key)
	put("candidate")
	n.Until(t, "in doubt about a foreign value", foreign)

	require.NoError(t, etcdtest.Err(foreigner.Revoke(etcdtest.Context(t), granted.ID)))
	l := n.Wins(t)
	require.Equal(t, queue[1], l.Key())
	require.EqualValues(t, 1, n.Rounds.Load())
}
