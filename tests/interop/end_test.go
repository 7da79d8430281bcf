package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// while is how long a test waits for a win that must not happen.
const while = 300 * time.Millisecond

// pairs are the kinds of a candidate and of the one behind it: Eldest with each other kind, both
// ways.
var pairs = [][2]string{
	{"etcdctl", "eldest"}, {"v3election", "eldest"}, {"concurrency", "eldest"},
	{"eldest", "etcdctl"}, {"eldest", "v3election"}, {"eldest", "concurrency"},
}

// dies ends a candidate without a request, and then its lease, as etcd does when the TTL is over.
func (s *stage) dies(t *testing.T, c *contender) {
	t.Helper()
	c.die()
	lease, err := keys.Parse(s.name, c.key)
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(s.cli.Revoke(etcdtest.Context(t), clientv3.LeaseID(lease))))
}

// A leader that dies is succeeded when its lease has expired, and not before it died.
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair[0]+" before "+pair[1], func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			leader := s.join(t, pair[0], "leader")
			next := s.join(t, pair[1], "next")
			token := s.wins(t, leader)
			require.Empty(t, next.won)
			s.dies(t, leader)
			require.Greater(t, s.wins(t, next), token)
			require.False(t, s.writes(t, leader, token))
			require.NoError(t, next.resign())
		})
	}
}

// The waiter in the middle leaves, or dies. The one behind it waits for the leader from then on,
// and wins when the leader resigns.
func TestWaiterLeaves(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		for how, end := range map[string]func(*testing.T, *stage, *contender){
			"leaves": func(_ *testing.T, _ *stage, c *contender) { c.leave() },
			"dies":   func(t *testing.T, s *stage, c *contender) { s.dies(t, c) },
		} {
			t.Run(pair[0]+" before "+pair[1]+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				leader := s.join(t, pair[1], "leader")
				middle := s.join(t, pair[0], "middle")
				last := s.join(t, pair[1], "last")
				s.wins(t, leader)
				end(t, s, middle)
				etcdtest.Eventually(t, func() bool { return len(s.queue(t)) == 2 }, "the waiter has left")
				etcdtest.Never(t, func() bool { return len(last.won) > 0 }, while, "a second leader")
				require.NoError(t, leader.resign())
				s.wins(t, last)
				require.NoError(t, last.resign())
			})
		}
	}
}

// The leader's key is deleted, as by eldest evict. The next candidate leads, and etcd refuses the
// former leader's writes. Only a leader of Eldest is notified. The others continue to run, and
// resigning later does not affect the new leader.
func TestLeaderIsEvicted(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair[0]+" before "+pair[1], func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			leader := s.join(t, pair[0], "leader")
			next := s.join(t, pair[1], "next")
			token := s.wins(t, leader)
			resp, err := s.cli.Delete(etcdtest.Context(t), leader.key)
			require.NoError(t, err)
			require.EqualValues(t, 1, resp.Deleted)
			successor := s.wins(t, next)
			require.Greater(t, successor, token)
			require.False(t, s.writes(t, leader, token))
			if leader.proclaim != nil {
				require.Error(t, leader.proclaim("mine"))
			}
			switch err := leader.resign(); pair[0] {
			case "eldest":
				require.ErrorIs(t, err, eldest.ErrDeposed)
			case "concurrency": // after a Proclaim that was refused it asks for an empty key
				require.ErrorIs(t, err, rpctypes.ErrEmptyKey)
			default:
				require.NoError(t, err)
			}
			require.True(t, s.writes(t, next, successor))
			require.NoError(t, next.resign())
		})
	}
}

// A waiter of Eldest with heartbeats evicts no leader of another kind, which has none.
func TestHeartbeatsBesideOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"concurrency", "etcdctl", "v3election"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			leader := s.join(t, kind, "leader")
			s.wins(t, leader)
			next := electiontest.Join(t, s.cli, s.name, func(l *lease.Config, _ *election.Config) {
				l.Heartbeat.Timeout = lease.MinHeartbeat
			})
			won := next.Queue(t)
			etcdtest.Never(t, func() bool { return len(won) > 0 }, 3*lease.MinHeartbeat, "an eviction")
			require.NoError(t, leader.resign())
			electiontest.Wins(t, won)
		})
	}
}
