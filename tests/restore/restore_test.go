package restore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

const svc = "svc"

// lead campaigns in the election and wins.
func lead(ctx context.Context, t *testing.T, client *clientv3.Client) (*lease.Session, *election.Leadership) {
	t.Helper()
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: time.Hour}})
	require.NoError(t, err)
	t.Cleanup(session.Abandon)
	candidate, err := election.New(election.Config{Election: svc, Session: session, KV: client, Watcher: client})
	require.NoError(t, err)
	leadership, err := candidate.Campaign(ctx)
	require.NoError(t, err)
	return session, leadership
}

// What a snapshot restores, what it does not restore, and what happens to tokens.
func TestTokensAfterARestore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client, stop := start(t, t.TempDir())
	session1, first := lead(ctx, t, client)
	backup := save(ctx, t, client)
	require.NoError(t, first.Resign(ctx))
	for range 10 {
		_, err := client.Put(ctx, "elsewhere", "x")
		require.NoError(t, err)
	}
	session2, second := lead(ctx, t, client)
	require.Greater(t, second.Token(), first.Token())
	stop()

	for name, c := range map[string]struct {
		bump uint64
		goes string
	}{"plain": {0, "back"}, "bumped": {1_000_000_000, "on"}} {
		t.Run(name, func(t *testing.T) {
			client, _ := start(t, restore(t, backup, c.bump))
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
			_, err = client.KeepAliveOnce(ctx, session2.ID())
			require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
			guarded, err = client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(second.Key()), "=", int64(second.Token()))).Commit()
			require.NoError(t, err)
			require.False(t, guarded.Succeeded)

			// Its lease gets its full TTL again; the next one leads after that, or when the lease
			// is revoked.
			left, err := client.TimeToLive(ctx, session1.ID())
			require.NoError(t, err)
			require.Greater(t, left.TTL, left.GrantedTTL/2)
			_, err = client.Revoke(ctx, session1.ID())
			require.NoError(t, err)
			_, third := lead(ctx, t, client)
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
