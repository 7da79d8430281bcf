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
	s := peertest.Suite{
		System: raftpeer.System(), Setting: peer.Defaults, Cut: peer.Defaults, Version: `^hashicorp/raft `, Nodes: 3, Written: 1,
	}
	s.Run(t, map[string]func(*testing.T, *peer.Servers){
		// A participant leads in the end when the leader ends, although the extra voter may win first.
		"the leader ends": func(t *testing.T, servers *peer.Servers) {
			seconds := map[*peertest.Participant]*peertest.Campaign{}
			for range 3 {
				p := s.Participants(t, servers, 2)
				p[0].Campaign("first").Win()
				seconds[p[0]] = p[1].Campaign("second").Wait()
				p[0].Cut() // it can not hand over
			}
			for first, second := range seconds {
				tenure := second.Win()
				etcdtest.Eventually(t, func() bool { return peertest.Append(t, tenure, "1") == nil }, "an entry of the successor")
				first.Heal() // otherwise the end waits for it
			}
		},
		"no observers": func(t *testing.T, servers *peer.Servers) {
			_, observes := s.Participants(t, servers, 1)[0].Client.(peer.Observer)
			require.False(t, observes)
		},
	})
}
