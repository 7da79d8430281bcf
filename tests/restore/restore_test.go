package restore

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const svc = "svc"

// What a snapshot restores, what it does not restore, and what happens to tokens.
func TestTokensAfterARestore(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 5*etcdtest.Patience)
	cluster := etcdtest.Start(t, etcdtest.Config{})
	client := cluster.Client(t)
	one := electiontest.Join(t, client, svc)
	first := one.Lead(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	// As etcdctl snapshot save does.
	cfg := clientv3.Config{Endpoints: cluster.Endpoints(), Logger: zap.NewNop()}
	require.NoError(t, etcdtest.Err(snapshot.NewV3(zap.NewNop()).Save(ctx, cfg, backup)))
	require.NoError(t, first.Resign(ctx))
	for range 10 {
		require.NoError(t, etcdtest.Err(client.Put(ctx, "elsewhere", "x")))
	}
	two := electiontest.Join(t, client, svc)
	second := two.Lead(t)
	require.Greater(t, second.Token(), first.Token())
	require.NoError(t, client.Close())

	for name, c := range map[string]struct {
		bump uint64
		goes string
	}{"plain": {0, "back"}, "bumped": {1_000_000_000, "on"}} {
		t.Run(name, func(t *testing.T) {
			member := cluster.Member(0)
			// As etcdutl snapshot restore does.
			require.NoError(t, member.Restore(ctx, func(dir, peer string) error {
				return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
					SnapshotPath: backup, OutputDataDir: dir, Name: member.Name, PeerURLs: []string{peer},
					InitialCluster: member.Name + "=" + peer, InitialClusterToken: "etcd-cluster",
					RevisionBump: c.bump, MarkCompacted: c.bump > 0,
				})
			}))
			client := cluster.Client(t)
			// The first one resigned, and is a candidate again.
			leader, err := observe.LeaderOf(ctx, client, svc)
			require.NoError(t, err)
			require.Equal(t, first.Token(), leader.Token)
			require.Equal(t, first.Key(), leader.Key)
			// Its guard passes again.
			guarded, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(first.Key()), "=", int64(first.Token()))).
				Then(clientv3.OpPut("elsewhere", "by the first")).Commit()
			require.NoError(t, err)
			require.True(t, guarded.Succeeded)
			// The second one never existed.
			_, err = client.KeepAliveOnce(ctx, two.Session.ID())
			require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
			guarded, err = client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(second.Key()), "=", int64(second.Token()))).Commit()
			require.NoError(t, err)
			require.False(t, guarded.Succeeded)

			// Its lease gets its full TTL again; the next one leads after that, or when the lease
			// is revoked.
			left, err := client.TimeToLive(ctx, one.Session.ID())
			require.NoError(t, err)
			require.Greater(t, left.TTL, left.GrantedTTL/2)
			require.NoError(t, etcdtest.Err(client.Revoke(ctx, one.Session.ID())))
			third := electiontest.Join(t, client, svc).Lead(t)
			require.Greater(t, third.Token(), first.Token())
			newest := second.Token() // the newest token that a fencing store has seen
			if c.goes == "back" {
				require.Less(t, third.Token(), newest, "a store that fences takes this leader")
			} else {
				require.Greater(t, third.Token(), newest+eldest.Token(c.bump)/2)
			}
		})
	}
}
