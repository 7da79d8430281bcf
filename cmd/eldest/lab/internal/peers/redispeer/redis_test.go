package redispeer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/redispeer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

// A lock passes on when its holder resigns, and when its network is cut; then it does not hold any more. In
// one server, an old leader's entry is refused. An observer is notified of all leaders, also of two in succession with
// one ID.
func TestLock(t *testing.T) {
	for _, s := range []peer.System{redispeer.Single(), redispeer.Redlock()} {
		t.Run(s.Name, func(t *testing.T) {
			servers := peertest.Start(t, s, peer.Shortest)
			require.Regexp(t, `^Redis \d+\.\d+`, servers.Version())
			p := peertest.Participants(t, s, servers, peer.Shortest, 3)
			observed := make(chan string, 10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer := etcdtest.Go(func() error { return p[2].Observe(ctx, func(id string) { observed <- id }) })

			first := p[0].Lead("first")
			require.Equal(t, "first", etcdtest.Take(t, observed, "observed"))
			second := p[1].Campaign("second")
			second.Wait()
			require.True(t, first.Holds())
			require.NoError(t, peertest.Append(t, first, "1"))
			require.NoError(t, first.Resign(etcdtest.Context(t)))
			require.False(t, first.Holds())

			leader := second.Win()
			require.Equal(t, "second", etcdtest.Take(t, observed, "observed"))
			third := p[0].Campaign("second")
			third.Wait()
			require.NoError(t, peertest.Append(t, leader, "2"))
			p[1].Cut()
			successor := third.Win()
			require.Equal(t, "second", etcdtest.Take(t, observed, "observed"))
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
			cancel()
			require.ErrorIs(t, etcdtest.Take(t, observer, "end of the observer"), context.Canceled)
		})
	}
}

// No server leads others.
func TestKillLeader(t *testing.T) {
	_, _, err := peertest.Start(t, redispeer.Redlock(), peer.Defaults).KillLeader(etcdtest.Context(t))
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// A candidate whose tries fail because no server answers is not queued until others have the lock.
func TestNoAnswer(t *testing.T) {
	s := redispeer.Redlock()
	servers := peertest.Start(t, s, peer.Shortest)
	p := peertest.Participants(t, s, servers, peer.Shortest, 2)
	tenure := p[0].Lead("a")
	p[1].Cut()
	waiter := p[1].Campaign("b")
	etcdtest.Never(t, func() bool {
		select {
		case <-waiter.Queued:
			return true
		default:
			return false
		}
	}, time.Second, "queued without an answer")
	p[1].Heal()
	waiter.Wait()
	require.True(t, tenure.Holds())
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
