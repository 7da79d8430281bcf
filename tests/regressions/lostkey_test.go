package regressions

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 1. A leads, B and C wait; B, a waiter, leaves. In another implementation (a C++ client) C
// took the end of its predecessor for its own win: two leaders. In Eldest C remains a waiter and
// waits for A from now on.
//
// Fails when a waiter wins as soon as its predecessor's key is deleted, without reading which
// candidates are older.
func TestRegression01_WaiterInTheMiddleLeaves(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"withdraws", "is revoked", "is deleted"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			a, b, waiter := join(t, c.Client(t), name), join(t, c.Client(t), name), join(t, c.Client(t), name)
			leader := a.Lead(t)
			middle := b.Queue(t)
			result := waiter.Queue(t)
			require.Equal(t, b.Candidate.Key(), etcdtest.Take(t, waiter.Waiting, "its predecessor").Predecessor.Key)
			switch way {
			case "withdraws":
				require.NoError(t, b.Candidate.Withdraw(etcdtest.Context(t)))
			case "is revoked":
				require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), b.Session.ID())))
			case "is deleted":
				require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), b.Candidate.Key())))
			}
			electiontest.Fails(t, middle)
			require.Equal(t, a.Candidate.Key(), etcdtest.Take(t, waiter.Waiting, "its new predecessor").Predecessor.Key)
			require.Empty(t, result, "it was elected beside the leader")
			require.NoError(t, leader.Err())
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.Greater(t, electiontest.Wins(t, result).Token(), leader.Token())
		})
	}
}

// Rows 2 and 3 (etcd #19597), the waiter. An operator deletes its key, or puts it again without the
// lease; or its lease is revoked. In other implementations it continues to wait and is "elected"
// without a key. In Eldest the campaign ends in milliseconds, with a typed error; the same happens
// when its session is closed. The leader is not affected, and the waiter may campaign again.
//
// Fails when a waiter's own key is not watched.
func TestRegression02_KeyDeletedWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for way, expected := range map[string]struct{ reason, again error }{
		"deleted":               {reason: eldest.ErrDeposed},
		"put without a lease":   {reason: eldest.ErrDeposed},
		"its lease is revoked":  {reason: eldest.ErrDeposed, again: eldest.ErrSessionLost},
		"its session is closed": {reason: eldest.ErrClosed, again: eldest.ErrClosed},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).Lead(t)
			cli := c.Client(t)
			var waiter *participant
			inMilliseconds(t, func() time.Duration {
				waiter = join(t, cli, name)
				result := waiter.Queue(t)
				etcdtest.Take(t, waiter.Waiting, "its wait")
				begin := time.Now()
				rob(t, admin, waiter, way)
				o := electiontest.Fails(t, result)
				require.ErrorIs(t, o.Reason, expected.reason, "why the waiter's campaign ended")
				var op *eldest.OpError
				require.ErrorAs(t, o.Reason, &op)
				require.Equal(t, waiter.Candidate.Key(), op.Key)
				etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is gone")
				require.NoError(t, leader.Err())
				return o.At.Sub(begin)
			})
			if expected.again != nil {
				require.ErrorIs(t, etcdtest.Err(waiter.Candidate.Campaign(etcdtest.Context(t))), expected.again)
				return
			}
			result := waiter.Queue(t)
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			electiontest.Wins(t, result)
		})
	}
}

// rob takes a participant's key, lease or session from it.
func rob(t *testing.T, admin *clientv3.Client, p *participant, way string) {
	t.Helper()
	ctx := etcdtest.Context(t)
	if strings.HasPrefix(way, "deleted") {
		require.NoError(t, etcdtest.Err(admin.Delete(ctx, p.Candidate.Key())))
	}
	if strings.Contains(way, "put") {
		require.NoError(t, etcdtest.Err(admin.Put(ctx, p.Candidate.Key(), "by hand")))
	}
	if strings.Contains(way, "revoked") {
		require.NoError(t, etcdtest.Err(admin.Revoke(ctx, p.Session.ID())))
	}
	if strings.Contains(way, "closed") {
		require.NoError(t, p.Session.Close(ctx))
	}
}

// Rows 2 and 3, the leader. In other implementations the tenure lasts until the lease ends. In Eldest
// it ends in milliseconds, with the cause "deposed"; the same happens when the key is put again by
// hand, without the lease.
//
// Fails when the leader's own key is not watched, or only its deletion is, and when there is any wait
// between the event and the notification.
func TestRegression02_KeyDeletedWhileLeading(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for _, way := range []string{"deleted", "put without a lease", "deleted and put again", "its lease is revoked"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			cli := c.Client(t)
			inMilliseconds(t, func() time.Duration {
				p := join(t, cli, etcdtest.Election(t))
				leader := p.Lead(t)
				begin := time.Now()
				rob(t, admin, p, way)
				etcdtest.Take(t, leader.Done(), "the end of the tenure")
				took := time.Since(begin)
				require.ErrorIs(t, leader.Err(), eldest.ErrDeposed)
				require.False(t, leader.Holds(0))
				return took
			})
		})
	}
}

// Row 3, when the event of its own loss never reaches the waiter. Then only the proof prevents a
// tenure without a key: it reads the candidate's own key at the revision at which its predecessor's
// key was deleted.
//
// Fails when txn.ByCreateRevision.Ahead does not read the candidate's own key.
func TestRegression03_OnlyTheProofTells(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"deleted", "revoked"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).Lead(t)
			cli := c.Client(t)
			waiter := join(t, cli, name, func(_ *lease.Config, e *election.Config) {
				e.Watcher, e.WatchCheck = etcdtest.Deaf(cli, leader.Key()), -1
			})
			result := waiter.Queue(t)
			etcdtest.Take(t, waiter.Waiting, "its wait")
			var err error
			if way == "deleted" {
				_, err = c.Client(t).Delete(etcdtest.Context(t), waiter.Candidate.Key())
			} else {
				_, err = c.Client(t).Revoke(etcdtest.Context(t), waiter.Session.ID())
			}
			require.NoError(t, err)
			require.Empty(t, result, "INVALID: it has heard of its loss")
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.ErrorIs(t, electiontest.Fails(t, result).Reason, eldest.ErrDeposed)
			require.Empty(t, queueOf(t, c, name))
		})
	}
}
