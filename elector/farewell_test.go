package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/memetcd"
)

// A node is stopped while etcd does not respond. Run returns when Config.Leave is over, whether the
// node leads, follows or has not registered yet. Its lease is no longer renewed, so its key is
// deleted with the lease, and the successor leads.
//
// The test fails if Run waits for etcd, or returns at once with the session alive.
func TestStopWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	const leave, granted = 400 * time.Millisecond, 10 * time.Second
	for _, role := range []elector.Role{elector.Leading, elector.Following, elector.Unknown} {
		t.Run(role.String(), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, etcd *memetcd.Etcd) {
				own, link := etcd.Client()
				t.Cleanup(func() { _ = own.Close() })
				start := func() *node {
					return run(t, config("e", "cut", own, virtual, ttl(granted), func(cfg *elector.Config) { cfg.Leave = leave }))
				}
				other := func() *node { return run(t, config("e", "other", cli, virtual)) }
				var n, next *node
				switch role {
				case elector.Leading:
					n = start()
					n.becomes(t, role)
					next = other()
					next.follows(t, "cut")
				case elector.Following:
					next = other()
					next.becomes(t, elector.Leading)
					n = start()
					n.becomes(t, role)
				default:
					link.Interrupt()
					n = start()
				}
				synctest.Wait()
				link.Interrupt()
				begin := time.Now()
				require.ErrorIs(t, n.end(t), context.Canceled)
				took := time.Since(begin)
				require.LessOrEqual(t, took, leave, "it waited for etcd")
				require.Equal(t, elector.Unknown, n.Status().Role())
				if role != elector.Unknown {
					require.Equal(t, leave, took, "it did not even try")
					require.Len(t, queueOf(t, cli, "e"), 2)
				}
				time.Sleep(granted)
				if next == nil {
					require.Empty(t, queueOf(t, cli, "e"))
					return
				}
				require.Equal(t, elector.Leading, next.Status().Role(), "it was renewed")
				require.Equal(t, []string{"other"}, nodesOf(t, queueOf(t, cli, "e")), "its key is left")
			})
		})
	}
}

// deafRevoke is a lease client whose revocations receive no reply.
type deafRevoke struct{ clientv3.Lease }

func (deafRevoke) Revoke(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The last Run of a group closes the session, which takes Config.Leave. Meanwhile a Run whose
// context has ended must return at once. The test fails if it waits for the end of the session with
// the group's mutex: then every further Run blocks as well, whatever its context.
func TestRunBehindAFarewell(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		g := group(t, cli, virtual, func(cfg *elector.Config) {
			cfg.Source = elector.Always(elector.Clients{KV: cli, Watcher: cli, Lease: deafRevoke{cli}, Majority: cli})
		})
		g.run(untilOver, "first")
		g.leads(1)
		g.stops["first"]()
		synctest.Wait() // the Run closes the session now
		require.Empty(t, g.done["first"])
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, name := range []string{"second", "third"} {
			began := time.Now()
			require.ErrorIs(t, g.Run(over, name, untilOver), context.Canceled)
			require.Zero(t, time.Since(began), "its context had ended before")
		}
		g.stop("first")
		g.run(untilOver, "first") // with another lease; the request to revoke the old one receives no reply
		g.leads(1)
	})
}
