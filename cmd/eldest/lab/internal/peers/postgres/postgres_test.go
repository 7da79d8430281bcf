package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/postgres"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

// More candidates than the server's default of max_connections, which is 100.
func TestPostgres(t *testing.T) {
	t.Parallel()
	peertest.Suite{
		System: postgres.System(), Setting: peer.Shortest, Cut: peer.Shortest,
		Version: `^PostgreSQL \d+\.\d+$`, Nodes: 1, Written: 1, Idle: true, Many: 120,
	}.Run(t, nil)
}

// With the default settings a partitioned leader is told nothing, and keeps the lock.
func TestDefaults(t *testing.T) {
	t.Parallel()
	servers := peertest.Start(t, postgres.System(), peer.Defaults)
	p := peertest.Participants(t, postgres.System(), servers, peer.Defaults, 1)[0]
	leader := p.Campaign("a").Win()
	p.Cut()
	etcdtest.Never(t, func() bool { return !leader.Holds() }, 3*time.Second, "a notice")
	p.Heal()
	require.NoError(t, leader.Append(etcdtest.Context(t), "a1"))
}
