package curator

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A caller may have as much as is left for the others.
func TestLobbyIsShared(t *testing.T) {
	l := newLobby(8, 100)
	enter := func(caller string) (n int) {
		for l.enter(caller) {
			n++
		}
		return n
	}
	require.Equal(t, 4, enter("greedy"))
	require.Equal(t, 2, enter("modest"))
	require.Equal(t, 1, enter("third"))
	require.Zero(t, enter("greedy"))
	require.True(t, l.hold("modest", 50))
	require.False(t, l.hold("modest", 1))
	require.True(t, l.hold("greedy", 25))
	require.False(t, l.hold("third", 26))
	for range 4 {
		l.leave("greedy")
	}
	require.Equal(t, 2, enter("third"))
	l.release("modest", 50)
	l.release("greedy", 25)
	for range 2 {
		l.leave("modest")
	}
	for range 3 {
		l.leave("third")
	}
	require.Empty(t, l.their, "a caller that has nothing is forgotten")
	require.Zero(t, l.all)
}

// Row 63: so many calls wait and no more, and so much is held and no more: who is over it is
// told at once, and can send it again. Of two callers one cannot keep the other out.
//
// Broken by waiting without a bound: a hundred calls of 3 MiB held 354 MiB.
func TestRow63WaitingIsBounded(t *testing.T) {
	n := newNode(t, "n", func(cfg *Config) { cfg.MaxWaiting, cfg.Wait = 8, etcdtest.Patience })
	other := dialTo(t, n.address)
	defer func() { require.NoError(t, other.Close()) }()
	answers := make(chan error, 20)
	for range cap(answers) {
		go func() { _, err := n.unary(etcdtest.Context(t), ""); answers <- err }()
	}
	for range cap(answers) - 4 {
		err := etcdtest.Take(t, answers, "a refusal")
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "too many calls wait")
		lost, ok := LostLeadership(err, "test")
		require.True(t, ok && lost.GetNothingApplied(), "%v", err)
	}
	modest := asking(func() error { return other.Invoke(etcdtest.Context(t), unaryMethod, &message{}, &message{}) })
	etcdtest.Eventually(t, func() bool { calls, _ := n.front.lobby.load(); return calls == 5 }, "another caller waits")
	n.leads(7, &script{unary: echo})
	require.NoError(t, etcdtest.Take(t, modest, "its answer"))
	for range 4 {
		require.NoError(t, etcdtest.Take(t, answers, "the answers"))
	}
	etcdtest.Eventually(t, func() bool { calls, bytes := n.front.lobby.load(); return calls+bytes == 0 }, "nobody waits")
}

// Row 63: messages that wait are counted, wherever they were tried before.
func TestRow63HeldBytesAreBounded(t *testing.T) {
	const size = 100 << 10
	s := &script{unary: echo}
	last, next := newNode(t, "last"), newNode(t, "next")
	last.lame(t, s)
	follower := newNode(t, "follower", func(cfg *Config) { cfg.MaxHeld, cfg.Wait = 10*size, etcdtest.Patience })
	follower.front.router.follow(last.as(7))
	p := follower.front.router.Now().peer
	seat, err := p.take("the test")
	require.NoError(t, err)
	seat.Connect()
	etcdtest.Eventually(t, func() bool { return seat.GetState().String() == "READY" }, "there is a connection")
	p.unary.learn(unaryMethod)
	answers := make(chan error, 20)
	for range cap(answers) {
		go func() { _, err := follower.unary(etcdtest.Context(t), strings.Repeat("x", size)); answers <- err }()
	}
	for range cap(answers) - 5 {
		err := etcdtest.Take(t, answers, "a refusal")
		// There was no room to wait, or none to keep what was sent.
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
		lost, ok := LostLeadership(err, "test")
		require.True(t, ok && lost.GetNothingApplied(), "%v", err)
		_, bytes := follower.front.lobby.load()
		require.LessOrEqual(t, bytes, 10*size)
	}
	seat.done()
	next.leads(8, s)
	follower.front.router.follow(next.as(8))
	for range 5 {
		require.NoError(t, etcdtest.Take(t, answers, "the answers"))
	}
	require.Zero(t, last.calls.Load())
	etcdtest.Eventually(t, func() bool { calls, bytes := follower.front.lobby.load(); return calls+bytes == 0 }, "nothing is held")
}

// Row 63: one caller's streams that nobody reads, as many as a connection may have, hold up no
// other caller's calls, and are not taken for a dead leader either.
//
// Broken by one connection for all.
func TestRow63OneCallerStarvesNobody(t *testing.T) {
	t.Parallel()
	var read atomic.Bool
	go_ := make(chan struct{})
	s := &script{unary: echo, stream: func(stream grpc.ServerStream) error {
		<-go_
		read.Store(true)
		return echoes(stream)
	}}
	const streams = 16
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxStreams = streams })
	leader.leads(7, s)
	follower := newNodeBeating(t, brisk, "follower", func(cfg *Config) { cfg.Wait = 5 * time.Second })
	follower.front.router.follow(leader.as(7))

	ctx, cancel := context.WithCancel(etcdtest.ContextFor(t, 2*etcdtest.Patience))
	defer cancel()
	block := wrapperspb.Bytes(make([]byte, 128<<10))
	var sent atomic.Int64
	var sending []<-chan error
	for range streams {
		stream := follower.open(ctx, bidiMethod)
		sending = append(sending, asking(func() error {
			for {
				if err := stream.SendMsg(block); err != nil {
					return err
				}
				sent.Add(1)
			}
		}))
	}
	settled(t, &sent)
	for i := range 8 {
		conn := dialTo(t, follower.address)
		out := &message{}
		for range 3 {
			err := conn.Invoke(etcdtest.Context(t), unaryMethod, wrapperspb.Bytes([]byte(strings.Repeat("y", 8<<10))), out)
			require.NoError(t, err, "caller %d", i)
		}
		require.NoError(t, conn.Close())
	}
	time.Sleep(2 * time.Duration(brisk.misses+1) * brisk.timeout) // time to take the leader for dead
	p := follower.front.router.Now().peer
	p.mu.Lock()
	pulse, links := p.pulse, len(p.links)
	p.mu.Unlock()
	require.NotNil(t, pulse, "the leader was taken for dead")
	require.NoError(t, pulse.reason())
	require.LessOrEqual(t, links, maxLinks)
	require.False(t, read.Load())
	close(go_)
	cancel()
	for _, s := range sending {
		err := etcdtest.Take(t, s, "a sender")
		require.False(t, errors.Is(err, context.DeadlineExceeded))
	}
}

// brisk takes a leader for dead that does not answer for a second.
var brisk = heartbeat{every: 20 * time.Millisecond, timeout: 500 * time.Millisecond, misses: 2}

// narrow is a connection that carries so much in a second, and no more.
type narrow struct {
	net.Conn
	bytes int
}

func (n narrow) Write(b []byte) (int, error) {
	time.Sleep(time.Second * time.Duration(len(b)) / time.Duration(n.bytes))
	return n.Conn.Write(b)
}

// Row 63: a leader to whom a large message is under way over a narrow connection is not taken
// for dead.
//
// Broken by asking whether it lives on the same connection.
func TestRow63HeartbeatBesideALargeMessage(t *testing.T) {
	t.Parallel()
	leader := newNode(t, "leader")
	leader.leads(7, &script{unary: echo})
	follower := newNodeBeating(t, brisk, "follower", func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return narrow{c, 24 << 10}, err
		}))
	})
	follower.front.router.follow(leader.as(7))
	out, err := follower.unary(etcdtest.Context(t), strings.Repeat("x", 128<<10)) // for five seconds
	require.NoError(t, err)
	require.Len(t, out, 128<<10)
}

// Calls that wait for a connection are bounded as others are.
func TestWaitForAConnectionIsBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	n := newNode(t, "n", func(cfg *Config) { cfg.Wait, cfg.MaxWaiting = etcdtest.Patience, 8 })
	to := n.as(7)
	to.NodeID, to.Instance, to.Address = "silent", "", silent.Addr().String()
	n.front.router.follow(to)
	answers := make(chan error, 40)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	for range cap(answers) {
		go func() { _, err := n.unary(ctx, ""); answers <- err }()
	}
	for range cap(answers) - 4 {
		err := etcdtest.Take(t, answers, "a refusal")
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
		lost, ok := LostLeadership(err, "test")
		require.True(t, ok && lost.GetNothingApplied(), "%v", err)
	}
	cancel()
	for range 4 {
		require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, answers, "the others")))
	}
	etcdtest.Eventually(t, func() bool { calls, bytes := n.front.lobby.load(); return calls+bytes == 0 }, "nobody waits")
}
