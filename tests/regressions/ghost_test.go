package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 26, the key that is left. The leader gives up while etcd cannot be reached, so its
// resignation does not arrive, and its lease lasts for another minute when the network is back. In
// other implementations the node then waits for its own old key, and so do all other candidates. In
// Eldest its next round removes the key of its earlier round, and leads.
//
// Fails when a round does not evict the key that an earlier round could not remove.
func TestRegression26_KeyOfAnEarlierRound(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	n := startTwin(t, c, name)
	first := etcdtest.Take(t, n.won, "the first win")
	n.giveUp(t)
	n.becomes(t, elector.Unknown)
	require.Equal(t, []string{first.Key()}, queueOf(t, c, name), "INVALID: nothing was left")
	n.host.Mend()
	begin := time.Now()
	second := etcdtest.Take(t, n.won, "the next win")
	require.Less(t, time.Since(begin), quiet/2, "it waited for its own lease")
	require.Greater(t, second.Token(), first.Token())
	require.Equal(t, []string{second.Key()}, queueOf(t, c, name))
	require.EqualValues(t, 2, n.calls.Load())
}
