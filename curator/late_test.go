package curator

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A handler that met the end of the tenure in a receive, read from the clock, and returns it
// when the tenure has ended for everybody: the caller is told of it in the details.
func TestEndOfTheTenureIsMetTwice(t *testing.T) {
	late := make(chan struct{})
	s := &script{stream: func(stream grpc.ServerStream) error {
		err := stream.RecvMsg(&message{})
		close(late)
		<-stream.Context().Done()
		return err
	}}
	n := newNode(t, "n")
	tenure := n.tenure(7, s)
	var past atomic.Bool
	tenure.holds = func() bool { return !past.Load() }
	n.front.router.lead(tenure)
	call := n.open(etcdtest.Context(t), bidiMethod)
	require.Eventually(t, func() bool { return n.calls.Load() == 1 }, etcdtest.Patience, etcdtest.Patience/1e4)
	past.Store(true)
	call.send("late")
	etcdtest.Take(t, late, "the receive")
	n.loses(tenure, errDeposed)
	requireRetry(t, call.end())
}
