package curator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 56: what a caller takes to send its message is not spent waiting for a leader.
//
// Broken by one limit for both: at a follower the call was UNAVAILABLE, at the leader it was not.
func TestRow56SlowUploads(t *testing.T) {
	t.Parallel()
	everywhere(t, &script{unary: echo, stream: echoes}, func(t *testing.T, n *node) {
		for range 2 { // before it is known to be unary, and after
			for _, method := range []string{unaryMethod, bidiMethod} {
				stream := n.open(etcdtest.Context(t), method)
				time.Sleep(3 * n.front.wait)
				stream.send("slow")
				require.NoError(t, stream.CloseSend())
				stream.expect("slow")
				require.NoError(t, stream.end())
			}
		}
	}, func(cfg *Config) { cfg.Wait = 200 * time.Millisecond })
}

// Row 56: nor is it if there is no connection any more when the message has come.
func TestRow56SlowUploadAndAnotherConnection(t *testing.T) {
	t.Parallel()
	var way network
	_, follower := pair(t, &script{unary: echo}, way.join, func(cfg *Config) { cfg.Wait = 2 * time.Second })
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	require.True(t, follower.front.router.Now().peer.unary.knows(unaryMethod))
	stream := follower.open(etcdtest.Context(t), unaryMethod)
	etcdtest.Eventually(t, func() bool { return follower.front.traffic.load().Forwarding == 1 }, "it waits for the message")
	time.Sleep(follower.front.wait)
	way.cut()
	stream.send("slow")
	require.NoError(t, stream.CloseSend())
	stream.expect("slow")
	require.NoError(t, stream.end())
}

// The wait for a leader ends where the call begins, however long it takes then.
//
// Broken by a timer that goes on when the call to the leader has been opened.
func TestCallOutlastsThePatience(t *testing.T) {
	t.Parallel()
	pause := func(n time.Duration) { time.Sleep(3 * n) }
	const wait = 200 * time.Millisecond
	s := &script{unary: func(_ context.Context, in *message) (*message, error) {
		pause(wait)
		return in, nil
	}, stream: func(stream grpc.ServerStream) error {
		pause(wait)
		return echoes(stream)
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		for range 2 { // before it is known to be unary, and after
			out, err := n.unary(etcdtest.Context(t), "hello")
			require.NoError(t, err)
			require.Equal(t, "hello", out)
		}
		stream := n.open(etcdtest.Context(t), bidiMethod)
		stream.send("first")
		stream.expect("first")
		pause(wait)
		stream.send("second")
		stream.expect("second")
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.end())
	}, func(cfg *Config) { cfg.Wait = wait })
}

// Row 56: nor is it where the leader ends meanwhile, and the follower did not know that the call
// is one with one message.
func TestRow56SlowUploadIsTurnedAway(t *testing.T) {
	t.Parallel()
	s := &script{unary: echo}
	last, next := newNode(t, "last"), newNode(t, "next")
	tenure := last.leads(7, s)
	next.leads(8, s)
	follower := newNode(t, "follower", func(cfg *Config) { cfg.Wait = 500 * time.Millisecond })
	follower.front.router.follow(last.as(7))
	call := follower.open(etcdtest.Context(t), unaryMethod)
	time.Sleep(2 * follower.front.wait)
	last.loses(tenure, errDeposed)
	follower.front.router.follow(next.as(8))
	time.Sleep(100 * time.Millisecond)
	call.send("late")
	require.NoError(t, call.CloseSend())
	call.expect("late")
	require.NoError(t, call.end())
}
