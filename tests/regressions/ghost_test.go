package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 26, the key that is left. The leader gives up while etcd cannot be reached, so its
// farewell does not arrive, and its lease has a minute to live when the network is back.
// Elsewhere the node then waits for itself, and everybody with it. Here its next round
// takes the key of its earlier one away, and leads.
//
// Fails when a round does not evict what an earlier one could not take with it.
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
