package curator

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A handler that sends after the deadline, in a process that was stopped before it, is refused: the
// node has not been notified of the end, and the caller receives nothing of an earlier leader.
//
// Fails if only a receive reads the clock.
func TestNoMessageAfterTheDeadline(t *testing.T) {
	var past atomic.Bool
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	leader.leadsWhile(7, &script{stream: func(stream grpc.ServerStream) error {
		if err := replies(stream, "in time"); err != nil {
			return err
		}
		past.Store(true)
		return replies(stream, "late")
	}}, func() bool { return !past.Load() })
	follower.follows(leader, 7)
	for _, n := range []*node{leader, follower} {
		past.Store(false)
		stream := n.open(bidiMethod)
		stream.expect("in time")
		got, err := stream.receive()
		require.Empty(t, got, "a message was sent after the deadline")
		lost := requireRetry(t, err)
		require.EqualValues(t, 7, lost.GetToken())
		require.False(t, lost.GetNothingApplied())
	}
}

// The end of what a caller sends is received as its messages are: after the deadline it is refused, and a
// handler does not take a batch for complete in a tenure that is over.
//
// Fails if only a message makes a receive read the clock.
func TestNoEndAfterTheDeadline(t *testing.T) {
	n := newNode(t, "n")
	received := make(chan error, 1)
	var past atomic.Bool
	n.leadsWhile(7, &script{stream: func(stream grpc.ServerStream) error {
		err := replies(stream, "begun")
		if err == nil {
			err = stream.RecvMsg(&message{})
		}
		received <- err
		return nil
	}}, func() bool { return !past.Load() })
	call := n.open(bidiMethod)
	call.expect("begun")
	time.Sleep(20 * time.Millisecond) // for the handler to be in the receive
	past.Store(true)
	require.NoError(t, call.CloseSend())
	require.EqualValues(t, 7, requireRetry(t, etcdtest.Take(t, received, "the end")).GetToken())
	requireRetry(t, call.end())
}

// A handler that returns without an error after the end of its tenure, as many do when their context
// ends, has not necessarily sent all: its stream does not end as a complete one. The only message of a
// method that streams in the other direction is complete.
//
// Fails if such a stream ends with OK.
func TestStreamThatEndsAfterItsTenure(t *testing.T) {
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	sent := make(chan struct{}, 2)
	for i, method := range []string{serverMethod, bidiMethod, clientMethod} {
		token := eldest.Token(7 + i)
		leader.leads(token, &script{stream: func(stream grpc.ServerStream) error {
			if err := replies(stream, "sent"); err != nil {
				return err
			}
			sent <- struct{}{}
			<-stream.Context().Done()
			return nil
		}})
		follower.follows(leader, token)
		var streams []*flow
		for _, n := range []*node{leader, follower} {
			stream := n.open(method)
			streams = append(streams, stream)
			if method == serverMethod {
				stream.send("all")
				require.NoError(t, stream.CloseSend())
			}
			etcdtest.Take(t, sent, "the handler")
		}
		leader.loses()
		for _, stream := range streams {
			if method == clientMethod {
				stream.expect("sent")
				require.NoError(t, stream.end())
				continue
			}
			lost := requireRetry(t, stream.end())
			require.EqualValues(t, token, lost.GetToken())
			require.False(t, lost.GetNothingApplied())
		}
	}
}

// lateError is an error whose text takes a moment: it stands for a process that is stopped meanwhile.
type lateError struct{ meanwhile func() }

func (e lateError) Error() string { e.meanwhile(); return "deposed, by the test" }

// A handler has returned when the node looks again, after the end of the tenure and of the time to wait
// for it: its answer is sent.
//
// Fails if select chooses between the answer and the end of the wait.
func TestAnswerThatIsThereCounts(t *testing.T) {
	s, began, release := held()
	n := newNode(t, "n")
	n.Stop() // handlers are not waited for
	for token := eldest.Token(7); token < 17; token++ {
		tenure := n.leads(token, s)
		done := n.ask("done")
		etcdtest.Take(t, began, "the handler")
		var once sync.Once
		tenure.Cancel(lateError{func() {
			once.Do(func() { release <- struct{}{}; time.Sleep(100 * time.Millisecond) })
		}})
		require.NoError(t, etcdtest.Take(t, done, "the answer"))
		n.loses()
	}
}
