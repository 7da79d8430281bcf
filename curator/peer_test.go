package curator

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// network is between the nodes: the test can swallow all that goes over it, or break it.
type network struct {
	mu    sync.Mutex
	conns map[*wire]bool
	dead  atomic.Bool // a black hole from now on, for connections that are there
	gone  atomic.Bool // nobody can be connected to from now on
	dials atomic.Int64
}

// wire is a connection through the network.
type wire struct {
	net.Conn
	n *network
}

func (n *network) join(cfg *Config) {
	cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		n.dials.Add(1)
		if n.gone.Load() {
			return nil, errors.New("refused")
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		w := &wire{Conn: c, n: n}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.conns == nil {
			n.conns = make(map[*wire]bool)
		}
		n.conns[w] = true
		return w, nil
	}))
}

// open is how many connections there are.
func (n *network) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// cut breaks all connections, as the death of a process does.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.conns {
		_ = w.Conn.Close()
	}
}

// Read swallows what arrives over a dead network.
func (w *wire) Read(b []byte) (int, error) {
	for {
		read, err := w.Conn.Read(b)
		if err != nil || !w.n.dead.Load() {
			return read, err
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	if w.n.dead.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.n.mu.Lock()
	delete(w.n.conns, w)
	w.n.mu.Unlock()
	return w.Conn.Close()
}

// waiting is a script whose handlers wait for the end of their context, and say that
// they have begun.
func waiting() (*script, chan struct{}) {
	began := make(chan struct{}, 100)
	return &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, stream: func(stream grpc.ServerStream) error {
		if err := replies(stream, "begun"); err != nil {
			return err
		}
		began <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	}}, began
}

// Row 45: the leader dies while calls are in flight there. They can be retried by the
// caller, who alone knows whether they may; no node retries them.
func TestRequirement45LeaderDiesWhileForwarding(t *testing.T) {
	s, began := waiting()
	var way network
	leader, follower := pair(t, s, way.join)
	for range 2 { // as one of two pumps, and as one message each way
		unary := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
		stream := follower.open(etcdtest.Context(t), bidiMethod)
		stream.expect("begun")
		etcdtest.Take(t, began, "a handler")
		etcdtest.Take(t, began, "the other")
		follower.front.router.Now().peer.unary.learn(unaryMethod)
		way.cut()
		for _, err := range []error{etcdtest.Take(t, unary, "the unary answer"), stream.end()} {
			detail := requireRetry(t, err)
			require.ErrorContains(t, err, `node "leader"`)
			require.Equal(t, "leader", detail.GetNodeId())
			require.Equal(t, int64(7), detail.GetToken())
			require.False(t, detail.GetNothingApplied())
		}
	}
	require.EqualValues(t, 4, leader.calls.Load(), "something was sent twice")
}

// A leader that cannot be reached: nothing has left, in whatever way it would have.
func TestUnreachableLeader(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = 3 * time.Second
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	// One look each, with time enough for it: a second one might come when there is none left.
	// The rest of Config.Wait is waited out.
	follower.front.lookAgain = func(int) time.Duration { return time.Hour }
	l := follower.as(7)
	l.NodeID, l.Instance, l.Address = "gone", "", etcdtest.Nowhere(t)
	follower.front.router.follow(l)
	for range 2 { // as one of two pumps, and as one message each way
		_, err := follower.unary(etcdtest.Context(t), "")
		require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		require.ErrorContains(t, err, "refused")
		follower.front.router.Now().peer.unary.learn(unaryMethod)
	}
	_, err := follower.unary(etcdtest.ContextFor(t, time.Millisecond), "")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.Equal(t, 1, strings.Count(log.String(), "the leader cannot be reached"), "said once")

	l.Token, l.Address = 8, "no address:\x00"
	follower.front.router.follow(l)
	_, err = follower.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
}

// A call that has not left waits for the leader to be there again, or for another one:
// with its message, if that was received already.
func TestUnsentCallsGoElsewhere(t *testing.T) {
	s := &script{unary: echo, stream: echoes}
	leader := newNode(t, "leader")
	leader.leads(8, s)
	for _, known := range []bool{false, true} {
		for name, next := range map[string]func(n *node){
			"another leader": func(n *node) { n.front.router.follow(leader.as(8)) },
			"here":           func(n *node) { n.leads(9, s) },
		} {
			var tried atomic.Int64
			follower := newNode(t, "follower", func(cfg *Config) {
				cfg.Wait = etcdtest.Patience
				cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
					tried.Add(1)
					return (&net.Dialer{}).DialContext(ctx, "tcp", address)
				}))
			})
			gone := follower.as(7)
			gone.NodeID, gone.Instance, gone.Address = "gone", "", etcdtest.Nowhere(t)
			follower.front.router.follow(gone)
			if known {
				follower.front.router.Now().peer.unary.learn(unaryMethod)
			}
			unary := asking(func() error {
				out, err := follower.unary(etcdtest.Context(t), "hello")
				if err == nil && out != "hello" {
					return errors.New("the message was lost: " + out)
				}
				return err
			})
			stream := follower.open(etcdtest.Context(t), bidiMethod)
			stream.send("hello")
			require.NoError(t, stream.CloseSend())
			etcdtest.Eventually(t, func() bool { return tried.Load() >= 2 }, "it is tried again")
			next(follower)
			require.NoError(t, etcdtest.Take(t, unary, name))
			stream.expect("hello")
			require.NoError(t, stream.end())
		}
	}
	require.EqualValues(t, 4, leader.calls.Load(), "each once")
}

// What gRPC does not let pass is not tried again.
func TestTooMuchMetadata(t *testing.T) {
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.MaxHeaderListSize(2048))
	})
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower")
	follower.front.router.follow(leader.as(7))
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	much := metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", 4096))
	for _, n := range []*node{leader, follower} {
		_, err = n.unary(much, "")
		require.Equal(t, codes.Internal, status.Code(err), "%v", err)
	}
	require.EqualValues(t, 1, leader.calls.Load())
}

// A leader that falls silent is given up by the heartbeat, and the calls there end; the
// next ones get a new connection.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s, began := waiting()
	var way network
	var beats atomic.Int64
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			defer beats.Add(1)
			return handler(ctx, in)
		}))
	})
	leader.leads(7, s)
	follower := newNodeBeating(t, quick, "follower", way.join)
	follower.front.router.follow(leader.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	stream.expect("begun")
	unary := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	etcdtest.Eventually(t, func() bool { return beats.Load() >= 1 }, "there is a connection to ask over")
	dials := way.dials.Load()
	// As long as it answers it is left alone, however long the calls take.
	etcdtest.Eventually(t, func() bool { return beats.Load() >= 5 }, "it is asked")
	require.Equal(t, dials, way.dials.Load())

	way.dead.Store(true)
	begun := time.Now()
	for _, err := range []error{stream.end(), etcdtest.Take(t, unary, "the unary answer")} {
		require.False(t, requireRetry(t, err).GetNothingApplied())
		require.ErrorContains(t, err, "did not answer")
	}
	require.Less(t, time.Since(begun), pingEvery, "that was not the heartbeat")

	way.dead.Store(false)
	leader.front.router.Now().tenure.methods[unaryMethod].impl.(*script).unary = echo
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
}

// The everyday heart is quick enough, and asks no more often than it must.
func TestHeartbeatPace(t *testing.T) {
	worst := everyday.every + time.Duration(everyday.misses)*max(everyday.timeout, everyday.every) + everyday.every
	require.LessOrEqual(t, worst, 7*time.Second)
	require.GreaterOrEqual(t, everyday.every, time.Second)
}

// Connections to a leader of an earlier tenure are closed, and calls there end; while
// nobody is known, and when the same leader is seen again, they stay.
func TestConnectionsToAnOldLeaderAreClosed(t *testing.T) {
	t.Parallel()
	s, began := waiting()
	var way network
	_, follower := pair(t, s, way.join)
	old := follower.front.router.Now().peer.leader
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	stream.expect("begun")
	etcdtest.Take(t, began, "the handler")
	follower.front.router.neither(errors.New("not known for a while"))
	follower.front.router.follow(old)
	etcdtest.Eventually(t, func() bool { return way.open() == 2 }, "one for calls, one to ask who is there")

	next := newNode(t, "next")
	next.leads(8, &script{unary: echo})
	follower.front.router.follow(next.as(8))
	err := stream.end()
	requireRetry(t, err)
	require.ErrorContains(t, err, "another tenure is known")
	etcdtest.Eventually(t, func() bool { return way.open() == 0 }, "the connections are closed")
	_, err = follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	etcdtest.Eventually(t, func() bool { return way.open() == 2 }, "those to the next leader")

	follower.leads(9, &script{unary: echo})
	etcdtest.Eventually(t, func() bool { return way.open() == 0 }, "a leader needs no leader")
}

// The news of the next leader may be quicker than the last answers of the one before.
func TestAnswersAfterTheNextLeaderIsKnown(t *testing.T) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	s := &script{unary: func(_ context.Context, in *message) (*message, error) {
		began <- struct{}{}
		<-release
		return in, nil
	}}
	var way network
	leader := newNode(t, "leader")
	leader.leads(7, s)
	follower := newNode(t, "follower", way.join, func(cfg *Config) { cfg.Grace = time.Hour })
	follower.front.router.follow(leader.as(7))
	done := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Take(t, began, "the handler")
	next := newNode(t, "next")
	next.leads(8, &script{unary: echo})
	follower.front.router.follow(next.as(8))
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	require.EqualValues(t, 1, next.calls.Load())
	etcdtest.Eventually(t, func() bool { return way.open() == 3 }, "that of the call, and two to the next leader")
	release <- struct{}{}
	require.NoError(t, etcdtest.Take(t, done, "the last answer"))
	etcdtest.Eventually(t, func() bool { return way.open() == 2 }, "and then the connection is closed")
}

// While a tenure is set up, no status counts; after it, whatever the status says: tokens
// may also be lower, where another etcd is asked, or one that was restored.
func TestStaleStatus(t *testing.T) {
	n, other := newNode(t, "n"), newNode(t, "other")
	r := n.front.router
	tenure := n.leads(8, &script{unary: echo})
	r.follow(other.as(7))
	r.neither(errDeposed)
	require.Equal(t, tenure, r.Now().tenure, "a tenure ends by its own word")
	n.loses(tenure, errDeposed)
	require.ErrorIs(t, r.Now().reason, errDeposed)
	for _, token := range []eldest.Token{9, 1000, 5} {
		served := other.leads(token, &script{unary: echo})
		r.follow(other.as(token))
		require.Equal(t, token, r.Now().peer.leader.Token)
		_, err := n.unary(etcdtest.Context(t), "")
		require.NoError(t, err)
		other.loses(served, errDeposed)
	}
}

// A server that is no curator has come to listen at the leader's old address: what it
// says is not the leader's word.
func TestStrangerAtTheLeadersAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stranger := grpc.NewServer()
	stranger.RegisterService(describe("test.Script"), &script{unary: echo, stream: echoes})
	served := make(chan error, 1)
	go func() { served <- stranger.Serve(listener) }()
	defer func() { stranger.Stop(); require.NoError(t, <-served) }()

	follower := newNode(t, "follower")
	l := follower.as(7)
	l.NodeID, l.Address = "leader", listener.Addr().String()
	follower.front.router.follow(l)
	_, err = follower.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
	err = follower.conn.Invoke(etcdtest.Context(t), "/test.Other/Unary", &message{}, &message{})
	requireRetry(t, err)
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	require.NoError(t, stream.CloseSend())
	requireRetry(t, stream.end())
}

// What an interceptor in front of the leader's curator says passes, whatever code it has:
// who is refused and who is turned away for a while.
func TestInterceptorOfTheLeader(t *testing.T) {
	said := codes.OK
	refuse := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if arrived(stream.Context()).hop.token > 0 && said != codes.OK {
			return status.Error(said, "not you, not now")
		}
		return handler(srv, stream)
	}
	_, follower := pair(t, &script{unary: echo}, func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(refuse))
	})
	for range 2 { // before it is known to be unary, and after
		for _, said = range []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted, codes.Unavailable, codes.Internal, codes.Aborted, codes.OK} {
			_, err := follower.unary(etcdtest.Context(t), "")
			require.Equal(t, said, status.Code(err), "%v", err)
			if err != nil {
				require.ErrorContains(t, err, "not you, not now")
			}
		}
	}
}

// A connection may be given up as soon as it is made, where the process stalls in between:
// the call finds it closed, and makes another one.
func TestConnectionGivenUpBeforeItsFirstCall(t *testing.T) {
	leader := newNode(t, "leader")
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower")
	follower.front.router.follow(leader.as(7))
	p := follower.front.router.Now().peer
	p.tend = func(p *peer, pulse *link) { go p.giveUp(errors.New("the leader did not answer")) }
	for range 100 {
		seat, err := p.take("a caller")
		require.NoError(t, err)
		require.NotNil(t, seat, "neither a connection nor an error")
		etcdtest.Take(t, seat.life.Done(), "the end of the connection")
		require.ErrorContains(t, seat.reason(), "did not answer")
		seat.done()
	}
	require.Empty(t, p.shares)

	p.tend = func(*peer, *link) {}
	out, err := follower.unary(etcdtest.Context(t), "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", out)
	require.EqualValues(t, 1, leader.calls.Load())
}

// frozen is a connection whose other end reads nothing any more once it is stuck.
type frozen struct {
	net.Conn
	stuck  *atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (c *frozen) Write(b []byte) (int, error) {
	if c.stuck.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *frozen) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A leader that is frozen does not hold up who comes after it.
func TestRouteChangesAlthoughTheLastLeaderIsFrozen(t *testing.T) {
	t.Parallel()
	var stuck atomic.Bool
	leader := newNode(t, "leader")
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return &frozen{Conn: c, stuck: &stuck, closed: make(chan struct{})}, err
		}))
	})
	follower.front.router.follow(leader.as(7))
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	stuck.Store(true)
	_, err = follower.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
	require.Error(t, err)
	begun := time.Now()
	follower.leads(8, &script{unary: echo})
	require.Less(t, time.Since(begun), 3*time.Second, "gRPC takes five to close the connection")
}
