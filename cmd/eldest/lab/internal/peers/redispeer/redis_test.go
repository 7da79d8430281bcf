package redispeer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/redispeer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

func TestRedis(t *testing.T) {
	t.Parallel()
	for nodes, system := range map[int]peer.System{1: redispeer.Single(), 3: redispeer.Redlock()} {
		t.Run(system.Name, func(t *testing.T) {
			t.Parallel()
			s := peertest.Suite{
				System: system, Setting: peer.Defaults, Cut: peer.Shortest, Version: `^Redis \d+\.\d+`, Nodes: nodes, Written: 1, Many: 20,
			}
			s.Run(t, map[string]func(*testing.T, *peer.Servers){
				"no answer":        func(t *testing.T, servers *peer.Servers) { noAnswer(t, s.Participants(t, servers, 2)) },
				"late resignation": func(t *testing.T, servers *peer.Servers) { lateResign(t, system, servers) },
				"the same ID":      func(t *testing.T, servers *peer.Servers) { sameID(t, s.Participants(t, servers, 2)) },
			})
		})
	}
}

// A candidate whose tries fail because no server answers is not queued until others have the lock.
func noAnswer(t *testing.T, p []*peertest.Participant) {
	tenure := p[0].Campaign("a").Win()
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

// An old leader, whose lock has expired, resigns: its successor keeps the lock. On a busy machine it may lose it.
func lateResign(t *testing.T, s peer.System, servers *peer.Servers) {
	etcdtest.Eventually(t, func() bool {
		p := peertest.Participants(t, s, servers, peer.Shortest, 2)
		old := p[0].Campaign("a").Win()
		p[0].Cut()
		next := p[1].Campaign("b").Win()
		p[0].Heal()
		_ = peertest.Append(t, old, "late") // it is connected again
		require.NoError(t, old.Resign(etcdtest.Context(t)))
		for begin := time.Now(); next.Holds() && time.Since(begin) < time.Second; { // several extensions
			time.Sleep(10 * time.Millisecond)
		}
		return next.Holds()
	}, "the successor leads on")
}

// An observer is notified of a leader that has the ID of its predecessor.
func sameID(t *testing.T, p []*peertest.Participant) {
	observed := p[1].Observe()
	for range 2 {
		tenure := p[0].Campaign("a").Win()
		require.Equal(t, "a", etcdtest.Take(t, observed, "observed"))
		require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	}
}

// What changes the data is counted, and what does not is not.
func TestWrites(t *testing.T) {
	t.Parallel()
	ctx, s := etcdtest.Context(t), redispeer.Single()
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
