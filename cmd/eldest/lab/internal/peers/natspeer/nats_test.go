package natspeer_test

import (
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

func TestNATS(t *testing.T) {
	t.Parallel()
	s := peertest.Suite{
		System: natspeer.System(), Setting: peer.Shortest, Cut: peer.Shortest,
		Version: `^NATS \d+\.\d+`, Nodes: 3, Written: 1, Many: 20,
	}
	servers := peertest.Start(t, s.System, s.Setting)
	s.Elections(t, servers, map[string]func(*testing.T, *peer.Servers){
		// Entries and updates do not disturb each other. On a busy machine an update may take too long.
		"updates": func(t *testing.T, servers *peer.Servers) {
			etcdtest.Eventually(t, func() bool {
				leader := s.Participants(t, servers, 1)[0].Campaign("a").Win()
				var appending sync.WaitGroup
				begin := time.Now()
				for range 3 { // so that there is an entry at each update
					appending.Go(func() {
						for leader.Holds() && time.Since(begin) < 2*time.Second { // several updates
							_ = peertest.Append(t, leader, "a1")
						}
					})
				}
				appending.Wait()
				return leader.Holds() && peertest.Append(t, leader, "a1") == nil
			}, "a leader that appends leads on")
		},
	})
	s.Servers(t, servers)
}

// With the default settings, whose updates are rare, the leader leads on when the bucket's own leader is killed.
func TestDefaults(t *testing.T) {
	t.Parallel()
	servers := peertest.Start(t, natspeer.System(), peer.Defaults)
	t.Run("lost races", func(t *testing.T) { lostRaces(t, servers) })
	peertest.Suite{System: natspeer.System(), Setting: peer.Defaults, Survives: true}.StoreLeader(t, servers)
}

// Candidates that have lost a race win the next ones: each wins within 20 s of its predecessor's resignation, which is
// less than the interval of their tries.
func lostRaces(t *testing.T, servers *peer.Servers) {
	const many = 20
	p := peertest.Participants(t, natspeer.System(), servers, peer.Defaults, 2)
	tenure := p[0].Campaign("leader").Win()
	won := make(chan peer.Tenure, many)
	for range many {
		queued := make(chan struct{})
		etcdtest.Go(func() error {
			tenure, err := p[1].Client.Campaign(t.Context(), "waiter", func() { close(queued) })
			won <- tenure
			return err
		})
		etcdtest.Take(t, queued, "queued")
	}
	require.True(t, tenure.Holds())
	for range many {
		require.NoError(t, tenure.Resign(etcdtest.Context(t)))
		tenure = etcdtest.Take(t, won, "a win")
	}
}
