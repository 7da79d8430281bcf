package raftpeer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/raftpeer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, raftpeer.Main) }

func TestRaft(t *testing.T) {
	t.Parallel()
	s := peertest.Suite{
		System: raftpeer.System(), Setting: peer.Defaults, Cut: peer.Defaults, Version: `^hashicorp/raft `, Nodes: 3, Written: 1,
	}
	s.Run(t, map[string]func(*testing.T, *peer.Servers){
		// A participant leads in the end when the leader ends, although the extra voter may win first.
		"no observers": func(t *testing.T, servers *peer.Servers) {
			_, observes := s.Participants(t, servers, 1)[0].Client.(peer.Observer)
			require.False(t, observes)
		},
	})
}

// A participant leads in the end when the leader ends, although the extra voter may win first.
func TestLeaderEnds(t *testing.T) {
	t.Parallel()
	s := raftpeer.System()
	servers := peertest.Start(t, s, peer.Shortest)
	for range 3 {
		p := peertest.Participants(t, s, servers, peer.Shortest, 2)
		p[0].Campaign("first").Win()
		second := p[1].Campaign("second").Wait()
		p[0].Cut() // it can not hand over
		tenure := second.Win()
		etcdtest.Eventually(t, func() bool { return peertest.Append(t, tenure, "1") == nil }, "an entry of the successor")
		p[0].Heal() // otherwise the end waits for it
	}
}
