package curator

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// limited is a leader that takes so many streams of one connection, with a follower
// whose streams have taken all of them.
func limited(t *testing.T, beat heartbeat, streams int) (follower *node, taken []*flow) {
	t.Helper()
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.MaxConcurrentStreams(uint32(streams)))
	})
	leader.leads(7, &script{unary: echo, stream: echoes})
	follower = newNodeBeating(t, beat, "follower")
	follower.front.router.follow(leader.as(7))
	for range streams {
		f := follower.open(etcdtest.Context(t), bidiMethod)
		f.send("hello")
		f.expect("hello")
		taken = append(taken, f)
	}
	return follower, taken
}

// A leader that limits streams is not taken for dead because the heartbeat gets none.
func TestHeartbeatWithoutAStream(t *testing.T) {
	t.Parallel()
	for _, streams := range []int{1, 8} {
		follower, taken := limited(t, quick, streams)
		p := follower.front.router.Now().peer
		hasty := heartbeat{timeout: 300 * time.Millisecond} // there will be no answer, however long it waits
		for range 2 * quick.misses {
			require.True(t, hasty.answered(p.pulse))
			require.True(t, hasty.answered(p.links[0]), "all of its streams are taken")
		}
		for _, f := range taken {
			f.send("still")
			f.expect("still")
			require.NoError(t, f.CloseSend())
			require.NoError(t, f.end())
		}
		require.Nil(t, p.pulse.reason())
	}
}

// The wait for a stream is one for a route: it is bounded, and nothing has left.
func TestWaitForAStream(t *testing.T) {
	follower, taken := limited(t, calm, 2)
	follower.front.wait = 100 * time.Millisecond // only while nothing is to be had
	for range 2 {                                // before it is known to be unary, and after
		_, err := follower.unary(etcdtest.Context(t), "")
		require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		require.ErrorContains(t, err, "in time")
		follower.front.router.Now().peer.unary.learn(unaryMethod)
	}
	_, err := follower.unary(etcdtest.ContextFor(t, 10*time.Millisecond), "")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.NoError(t, taken[0].CloseSend())
	require.NoError(t, taken[0].end())
	etcdtest.Eventually(t, func() bool { // the connection has the stream back a moment after we heard of its end
		out, err := follower.unary(etcdtest.Context(t), "hello")
		if err != nil {
			require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		}
		return out == "hello"
	}, "there is a stream again")
}

// So is the wait for a connection, where somebody accepts and says nothing.
func TestWaitForAConnection(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	n := newNode(t, "n", func(cfg *Config) { cfg.Wait = 100 * time.Millisecond })
	to := n.as(7)
	to.NodeID, to.Instance, to.Address = "silent", "", silent.Addr().String()
	n.front.router.follow(to)
	for range 2 {
		begun := time.Now()
		_, err = n.unary(etcdtest.Context(t), "")
		require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		require.Less(t, time.Since(begun), dialTimeout)
		n.front.router.Now().peer.unary.learn(unaryMethod)
	}
}
