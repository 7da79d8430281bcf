package nodes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/elector"
)

// etcd is away for half an hour. By then gRPC's own pause before it connects again has
// grown to two minutes; all the same, with a client that was made with no options, the
// nodes are back within ten seconds. Fails when nobody has the client connect anew.
func TestBackSoonAfterALongOutage(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		s := &stage{world: w, ttl: 5 * time.Second, admin: w.Host("admin")}
		p := &troupe{stage: s, nodes: make([]*node, 3)}
		for i := range p.nodes {
			p.again(i)
		}
		p.settle()
		w.Server.Stop()
		p.pass(30 * time.Minute)
		require.Equal(t, -1, p.leader())
		require.NoError(t, w.Server.Start())
		back := w.Now()
		p.settle()
		require.Less(t, w.Now()-back, 10*time.Second)
		require.Equal(t, elector.Leading, p.nodes[p.leader()].Status().Role())
		for _, n := range p.nodes {
			n.end()
		}
		require.Empty(t, s.wrong)
	})
}
