package natspeer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/natspeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, natspeer.Main) }

// The leadership passes on when the leader resigns, and when its network is cut; then it has lost, and its
// entries are refused. An observer is notified of all leaders. Entries and updates do not disturb each other.
func TestElection(t *testing.T) {
	s := natspeer.System()
	servers := peertest.Start(t, s, peer.Shortest)
	require.Regexp(t, `^NATS \d+\.\d+`, servers.Version())
	before, err := servers.Writes(etcdtest.Context(t))
	require.NoError(t, err)
	p := peertest.Participants(t, s, servers, peer.Shortest, 3)

	observed := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	observer := etcdtest.Go(func() error { return p[2].Observe(ctx, func(id string) { observed <- id }) })

	first := p[0].Campaign("first").Win()
	require.Equal(t, "first", etcdtest.Take(t, observed, "observed"))
	second := p[1].Campaign("second")
	second.Wait()
	require.True(t, first.Holds())
	entries := []string{"1"}
	require.NoError(t, peertest.Append(t, first, "1"))
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	require.False(t, first.Holds())

	leader := second.Win()
	require.Equal(t, "second", etcdtest.Take(t, observed, "observed"))
	third := p[0].Campaign("third")
	third.Wait()
	for begin := time.Now(); time.Since(begin) < 3*time.Second; { // several updates
		require.NoError(t, peertest.Append(t, leader, "2"))
		entries = append(entries, "2")
	}
	require.True(t, leader.Holds())
	cut := time.Now()
	p[1].Cut()
	successor := third.Win()
	t.Logf("%d entries; successor %s after the cut", len(entries), time.Since(cut))
	require.Equal(t, "third", etcdtest.Take(t, observed, "observed"))
	require.NoError(t, peertest.Append(t, successor, "3"))
	etcdtest.Eventually(t, func() bool { return !leader.Holds() }, "the old leader has lost")
	p[1].Heal()
	require.ErrorIs(t, peertest.Append(t, leader, "4"), peer.ErrRefused)
	p[1].RequireLog(append(entries, "3")...)
	require.True(t, successor.Holds())

	after, err := servers.Writes(etcdtest.Context(t))
	require.NoError(t, err)
	require.Greater(t, after, before+int64(len(entries)))
	cancel()
	require.ErrorIs(t, etcdtest.Take(t, observer, "end of the observer"), context.Canceled)
}

// Another server leads the bucket when its leader is killed; entries remain.
func TestKillLeader(t *testing.T) {
	s := natspeer.System()
	servers := peertest.Start(t, s, peer.Defaults)
	p := peertest.Participants(t, s, servers, peer.Defaults, 2)
	tenure := p[0].Campaign("a").Win()
	require.NoError(t, peertest.Append(t, tenure, "1"))
	killed, restart, err := servers.KillLeader(etcdtest.Context(t))
	require.NoError(t, err)
	etcdtest.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return tenure.Append(ctx, "2") == nil
	}, "an entry")
	t.Logf("an entry %s after the end of the leader", time.Since(killed))
	require.NoError(t, restart(etcdtest.Context(t)))
	require.True(t, tenure.Holds())
	log, err := p[1].Log(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, "1", log[0])
	require.Contains(t, log, "2")
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
}

// Many candidates and observers of one client are served. Candidates that have lost a race win the next ones:
// each wins within 20 s of its predecessor's resignation, which is less than the interval of their tries.
func TestMany(t *testing.T) {
	const many = 50
	s := natspeer.System()
	servers := peertest.Start(t, s, peer.Defaults)
	p := peertest.Participants(t, s, servers, peer.Defaults, 2)
	tenure := p[0].Campaign("leader").Win()
	var observers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer observers.Wait()
	defer cancel()
	told := make(chan string, many*(1+many)) // each observer is notified of each leader
	for range many {
		observers.Go(func() { _ = p[1].Observe(ctx, func(id string) { told <- id }) })
	}
	for range many {
		require.Equal(t, "leader", etcdtest.Take(t, told, "observed"))
	}
	var candidates sync.WaitGroup
	defer candidates.Wait()
	defer cancel()
	queued, won := make(chan string, many), make(chan peer.Tenure, many)
	for i := range many {
		id := fmt.Sprint("waiter-", i)
		c, err := p[1].Candidate(id)
		require.NoError(t, err)
		candidates.Go(func() {
			if tenure, err := c.Campaign(ctx, func() { queued <- id }); err == nil {
				won <- tenure
			}
		})
	}
	for range many {
		etcdtest.Take(t, queued, "queued")
	}
	require.True(t, tenure.Holds())
	for range many {
		require.NoError(t, tenure.Resign(etcdtest.Context(t)))
		tenure = etcdtest.Take(t, won, "a win")
	}
}
