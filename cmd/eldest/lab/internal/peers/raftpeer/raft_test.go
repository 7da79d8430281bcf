package raftpeer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/raftpeer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, raftpeer.Main) }

// The leadership passes on when the leader resigns, and when its network is cut; then it has lost, and its
// entries are not committed.
func TestElection(t *testing.T) {
	s := raftpeer.System()
	servers := peertest.Start(t, s, peer.Defaults)
	p := peertest.Participants(t, s, servers, peer.Defaults, 2)

	first := p[0].Campaign("first").Win()
	second := p[1].Campaign("second")
	second.Wait()
	require.True(t, first.Holds())
	before, err := servers.Writes(etcdtest.Context(t))
	require.NoError(t, err)
	require.NoError(t, peertest.Append(t, first, "1"))
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	require.False(t, first.Holds())

	leader := second.Win()
	third := p[0].Campaign("third")
	third.Wait()
	require.NoError(t, peertest.Append(t, leader, "2"))
	p[0].RequireLog("1", "2")
	cut := time.Now()
	p[1].Cut()
	require.Error(t, peertest.Append(t, leader, "lost"))
	require.False(t, leader.Holds())
	successor := third.Win()
	t.Logf("successor %s after the cut", time.Since(cut))
	require.NoError(t, peertest.Append(t, successor, "3"))
	p[1].Heal()
	require.ErrorIs(t, peertest.Append(t, leader, "4"), peer.ErrRefused)
	p[1].RequireLog("1", "2", "3")
	require.True(t, successor.Holds())

	after, err := servers.Writes(etcdtest.Context(t))
	require.NoError(t, err)
	require.GreaterOrEqual(t, after, before+3)
	require.Error(t, p[0].Observe(t.Context(), func(string) {}))
}

// A participant leads in the end when the leader ends, although the extra voter may win first.
func TestLeaderEnds(t *testing.T) {
	s := raftpeer.System()
	servers := peertest.Start(t, s, peer.Shortest)
	for range 5 {
		p := peertest.Participants(t, s, servers, peer.Shortest, 2)
		p[0].Campaign("first").Win()
		second := p[1].Campaign("second")
		second.Wait()
		p[0].Cut() // it can not hand over
		cut := time.Now()
		tenure := second.Win()
		t.Logf("successor %s after the cut", time.Since(cut))
		etcdtest.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return tenure.Append(ctx, "1") == nil
		}, "an entry of the successor")
	}
}
