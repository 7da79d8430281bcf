package regressions

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// locked is a cluster with authentication. After permit, its user "node" has the permissions that a
// node of the election needs.
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

// permit lets nodes be candidates, and lets a leader write its one key.
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

// Row 25, permission denied. In other implementations the loop spins, or ends without an error. In
// Eldest the status has the reason, there is a pause between rounds, no round leaves a lease, and
// the node is a candidate as soon as it has the permission.
//
// Fails when a refusal is taken for an outage, or when a refused round is the last one.
func TestRegression25_PermissionDenied(t *testing.T) {
	t.Parallel()
	k := lock(t)
	cli := k.as(t, "node")
	denied := func(s elector.Status) bool { return errors.Is(s.Reason(), rpctypes.ErrPermissionDenied) }
	n := stand(t, cli, k.name, "n", untilTheEnd)
	begin := time.Now()
	n.until(t, "denied", denied)
	require.Less(t, time.Since(begin), atOnce)
	etcdtest.Eventually(t, func() bool { return n.rounds.Load() >= 3 }, "it tries again")
	require.Zero(t, n.calls.Load())
	k.permit(t)
	l := etcdtest.Take(t, n.won, "the win once it may")
	leases, err := k.root.Leases(etcdtest.Context(t))
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1, "the lease of a round is left")

	// The permission is revoked while the node leads, and its key is deleted; then the permission
	// is granted again.
	rounds := n.rounds.Load()
	k.forbid(t)
	require.ErrorIs(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "of-"+k.name, "")), rpctypes.ErrPermissionDenied)
	require.NoError(t, etcdtest.Err(k.root.Delete(etcdtest.Context(t), l.Key())))
	n.until(t, "denied", denied)
	require.Less(t, n.rounds.Load()-rounds, int64(10))
	k.permit(t)
	require.Greater(t, etcdtest.Take(t, n.won, "the next win").Token(), l.Token())
}
