package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A node is stopped while etcd does not respond. Run returns when Config.Leave is over, whether the
// node leads, follows or has not registered yet. Its lease is no longer renewed, so its key is
// deleted with the lease, and the successor leads.
//
// The test fails if Run waits for etcd, or returns at once with the session alive.
func TestStopWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	// The TTL is long: on a busy machine, steps that need no etcd may take seconds.
	const leave, granted = 400 * time.Millisecond, 10 * time.Second
	for _, role := range []elector.Role{elector.Leading, elector.Following, elector.Unknown} {
		t.Run(role.String(), func(t *testing.T) {
			t.Parallel()
			name, cli, host := etcdtest.Election(t), c.Client(t), c.Host(t)
			t.Cleanup(host.Mend)
			cut := config(name, "cut", host.Client(t), ttl(granted), func(cfg *elector.Config) { cfg.Leave = leave })
			other := config(name, "other", cli)
			var n, next *node
			switch role {
			case elector.Leading:
				n = run(t, cut)
				etcdtest.Take(t, n.won, "the win")
				next = run(t, other)
				next.follows(t, "cut")
				host.Cut()
			case elector.Following:
				next = run(t, other)
				etcdtest.Take(t, next.won, "the win")
				n = run(t, cut)
				n.follows(t, "other")
				host.Cut()
			default:
				host.Cut()
				n = run(t, cut)
			}
			begin := time.Now()
			require.ErrorIs(t, n.end(t), context.Canceled)
			took := time.Since(begin)
			require.Less(t, took, granted/2, "it waited for etcd")
			if role != elector.Unknown {
				require.GreaterOrEqual(t, took, leave, "it did not even try")
				require.Eventually(t, func() bool { return host.Stats().Dropped.Inbound > 0 }, etcdtest.Patience, time.Millisecond, "INVALID: nothing was swallowed")
			}
			require.Equal(t, elector.Unknown, n.Status().Role())
			if role == elector.Leading {
				etcdtest.Take(t, next.won, "the successor's win")
				require.Less(t, time.Since(begin), granted+granted/2, "it was renewed")
			}
			require.Eventually(t, func() bool {
				queue := nodesOf(t, queueOf(t, cli, name))
				return len(queue) == 0 || len(queue) == 1 && queue[0] == "other"
			}, etcdtest.Patience, 10*time.Millisecond, "its key is left")
		})
	}
}
