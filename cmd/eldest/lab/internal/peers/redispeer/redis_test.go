package redispeer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/redispeer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

// A lock passes on when its holder resigns, and when its network is cut; then it does not hold any more. In
// one server, an old leader's entry is refused.
func TestLock(t *testing.T) {
	for _, s := range []peer.System{redispeer.Single(), redispeer.Redlock()} {
		t.Run(s.Name, func(t *testing.T) {
			servers := peertest.Start(t, s, peer.Shortest)
			require.Regexp(t, `^Redis \d+\.\d+`, servers.Version())
			p := peertest.Participants(t, s, servers, peer.Shortest, 2)

			first := p[0].Campaign("first").Win()
			second := p[1].Campaign("second")
			second.Wait()
			require.True(t, first.Holds())
			require.NoError(t, peertest.Append(t, first, "1"))
			require.NoError(t, first.Resign(etcdtest.Context(t)))
			require.False(t, first.Holds())

			leader := second.Win()
			third := p[0].Campaign("third")
			third.Wait()
			require.NoError(t, peertest.Append(t, leader, "2"))
			p[1].Cut()
			successor := third.Win()
			require.False(t, leader.Holds())
			require.NoError(t, peertest.Append(t, successor, "3"))
			p[1].Heal()
			err := peertest.Append(t, leader, "4")
			if s.Guard != "" {
				require.ErrorIs(t, err, peer.ErrRefused)
				p[0].RequireLog("1", "2", "3")
			} else {
				require.NoError(t, err)
				p[0].RequireLog("1", "2", "3", "4")
			}
			require.False(t, leader.Holds())
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.True(t, successor.Holds())
		})
	}
}

// Redlock holds a lock while one of three servers is down. One server has no leader to kill.
func TestKillLeader(t *testing.T) {
	ctx := etcdtest.Context(t)
	_, err := peertest.Start(t, redispeer.Single(), peer.Defaults).KillLeader(ctx)
	require.ErrorContains(t, err, "one Redis server")

	s := redispeer.Redlock()
	servers := peertest.Start(t, s, peer.Defaults)
	p := peertest.Participants(t, s, servers, peer.Defaults, 1)[0]
	tenure := p.Campaign("a").Win()
	restart, err := servers.KillLeader(ctx)
	require.NoError(t, err)
	require.NoError(t, peertest.Append(t, tenure, "1"))
	require.NoError(t, restart(ctx))
	require.True(t, tenure.Holds())
	require.NoError(t, tenure.Resign(ctx))
}

// What changes the data is counted, and what does not is not.
func TestWrites(t *testing.T) {
	ctx := etcdtest.Context(t)
	s := redispeer.Single()
	servers := peertest.Start(t, s, peer.Defaults)
	writes := func() int64 {
		n, err := servers.Writes(ctx)
		require.NoError(t, err)
		return n
	}
	p := peertest.Participants(t, s, servers, peer.Defaults, 2)
	before := writes()
	tenure := p[0].Campaign("a").Win()
	require.Equal(t, before+1, writes())
	p[1].Campaign("b").Wait()
	require.Equal(t, before+1, writes())
	etcdtest.Eventually(t, func() bool { return writes() == before+2 }, "an extension")
	require.True(t, tenure.Holds())
}
