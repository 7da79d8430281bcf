package curator

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 45: the leader crashes while calls are in flight there. Only the caller can decide whether
// they may be retried; no node retries them.
func TestRequirement45LeaderDiesWhileForwarding(t *testing.T) {
	s, began := waiting()
	var way network
	leader, follower := pair(t, s, way.join)
	for range 2 { // before the method is known to be unary, and after
		unary, stream := follower.ask(""), follower.open(bidiMethod)
		stream.expect("begun")
		etcdtest.Take(t, began, "a handler")
		etcdtest.Take(t, began, "the other")
		follower.router.Now().Peer.unary.Store(unaryMethod, nil)
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

// A call that has not left waits until the leader can be reached, or for another one: with its
// message, if that was received already.
func TestUnsentCallsGoElsewhere(t *testing.T) {
	leader := newNode(t, "leader")
	leader.leads(8, echoing)
	for _, known := range []bool{false, true} {
		for name, next := range map[string]func(n *node){
			"another leader": func(n *node) { n.follows(leader, 8) },
			"here":           func(n *node) { n.leads(9, echoing) },
		} {
			follower := newNode(t, "follower", patient)
			var tries atomic.Int64
			follower.lookAgain = func(int) time.Duration { tries.Add(1); return 10 * time.Millisecond }
			follower.followsAt(etcdtest.Nowhere(t))
			if known {
				follower.router.Now().Peer.unary.Store(unaryMethod, nil)
			}
			unary, stream := follower.ask("hello"), follower.open(bidiMethod)
			stream.send("hello")
			require.NoError(t, stream.CloseSend())
			etcdtest.Eventually(t, func() bool { return tries.Load() >= 4 }, "it is tried again")
			next(follower)
			require.NoError(t, etcdtest.Take(t, unary, name))
			stream.expect("hello")
			require.NoError(t, stream.end())
		}
	}
	require.EqualValues(t, 4, leader.calls.Load(), "each once")
}

// The heartbeat closes the connections to a leader that does not respond any more, and the calls
// there end. The next calls get a new connection.
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
	follower.follows(leader, 7)
	stream := follower.open(bidiMethod)
	stream.expect("begun")
	unary := follower.ask("")
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	etcdtest.Eventually(t, func() bool { return beats.Load() >= 1 }, "there is a connection to ask over")
	dials := way.dials.Load()
	// While the leader answers its connections stay, however long the calls take.
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
	s.unary = echo
	follower.answers("")

	// defaultHeartbeat detects a failure soon enough, and sends no more requests than necessary.
	worst := defaultHeartbeat.every + time.Duration(defaultHeartbeat.misses)*max(defaultHeartbeat.timeout, defaultHeartbeat.every) + defaultHeartbeat.every
	require.LessOrEqual(t, worst, 7*time.Second)
	require.GreaterOrEqual(t, defaultHeartbeat.every, time.Second)
}

// Connections to the leader of an earlier tenure are closed, and calls there end. They stay while
// no leader is known, and when the same leader is seen again.
func TestConnectionsToAnOldLeaderAreClosed(t *testing.T) {
	t.Parallel()
	s, began := waiting()
	var way network
	_, follower := pair(t, s, way.join)
	open := func(n int, what string) {
		t.Helper()
		etcdtest.Eventually(t, func() bool { return way.open() == n }, "%s", what)
	}
	old := follower.router.Now().Peer.leader
	stream := follower.open(bidiMethod)
	stream.expect("begun")
	etcdtest.Take(t, began, "the handler")
	follower.router.Unknown(errors.New("not known for a while"))
	follower.router.Follow(old)
	open(2, "one for calls, one to ask who is there")

	next := newNode(t, "next")
	next.leads(8, echoing)
	follower.follows(next, 8)
	err := stream.end()
	requireRetry(t, err)
	require.ErrorContains(t, err, "another tenure is known")
	open(0, "the connections are closed")
	follower.answers("")
	open(2, "those to the next leader")
	follower.leads(9, echoing)
	open(0, "a leader needs no leader")
}

// A call continues at an earlier address of its leader, and ends when another tenure is known, also
// if the leader does not end it.
func TestCallsAtAnEarlierAddress(t *testing.T) {
	var way network
	leader, follower := pair(t, echoing, way.join, grace(time.Millisecond))
	stream := follower.open(bidiMethod)
	stream.send("before")
	stream.expect("before")
	to := leader.as(7)
	to.Address = "127.0.0.1:1"
	follower.router.Follow(to)
	time.Sleep(20 * time.Millisecond) // longer than the grace
	stream.send("after")
	stream.expect("after")
	next := newNode(t, "next")
	next.leads(8, echoing)
	follower.follows(next, 8)
	err := stream.end()
	requireRetry(t, err)
	require.ErrorContains(t, err, "another tenure is known")
	etcdtest.Eventually(t, func() bool { return way.open() == 0 }, "the connections are closed")
}

// The next leader may become known before the last answers of the one before arrive.
func TestAnswersAfterTheNextLeaderIsKnown(t *testing.T) {
	s, began, release := held()
	var way network
	leader, next, follower := newNode(t, "leader"), newNode(t, "next"), newNode(t, "follower", way.join, grace(time.Hour))
	leader.leads(7, s)
	follower.follows(leader, 7)
	done := follower.ask("")
	etcdtest.Take(t, began, "the handler")
	next.leads(8, echoing)
	follower.follows(next, 8)
	follower.answers("")
	require.EqualValues(t, 1, next.calls.Load())
	etcdtest.Eventually(t, func() bool { return way.open() == 3 }, "that of the call, and two to the next leader")
	release <- struct{}{}
	require.NoError(t, etcdtest.Take(t, done, "the last answer"))
	etcdtest.Eventually(t, func() bool { return way.open() == 2 }, "and then the connection is closed")
}

// A server that is not a curator listens at the leader's old address: its answers do not count as
// the leader's.
func TestStrangerAtTheLeadersAddress(t *testing.T) {
	listener := listen(t)
	stranger := grpc.NewServer()
	stranger.RegisterService(describe("test.Script"), echoing)
	served := asking(func() error { return stranger.Serve(listener) })
	defer func() { stranger.Stop(); require.NoError(t, <-served) }()
	follower := newNode(t, "follower")
	follower.followsAt(listener.Addr().String())
	requireRetry(t, follower.call(""))
	requireRetry(t, follower.conn.Invoke(etcdtest.Context(t), "/test.Other/Unary", &message{}, &message{}))
	stream := follower.open(bidiMethod)
	require.NoError(t, stream.CloseSend())
	requireRetry(t, stream.end())
}

// The answer of an interceptor in front of the leader's curator is passed on, with any code.
func TestInterceptorOfTheLeader(t *testing.T) {
	said := codes.OK
	_, follower := pair(t, echoing, intercept(func(ctx context.Context) error {
		if arrived(ctx).hop.token > 0 && said != codes.OK {
			return status.Error(said, "not you, not now")
		}
		return nil
	}))
	for range 2 { // before the method is known to be unary, and after
		for _, said = range []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted, codes.Unavailable, codes.Internal, codes.Aborted} {
			requireCode(t, said, follower.call(""), "not you, not now")
		}
		said = codes.OK
		follower.answers("")
	}
}

// A connection may be aborted as soon as it is made, if the process stalls in between. Then the
// call finds it closed, and makes another one.
func TestConnectionGivenUpBeforeItsFirstCall(t *testing.T) {
	leader, follower := pair(t, echoing)
	p := follower.router.Now().Peer
	for range 100 {
		aborted := asking(func() error {
			for !p.hasControl() { // not before the connection is made, and at once then
				runtime.Gosched()
			}
			p.abort(errors.New("the leader did not answer"))
			return nil
		})
		conn, err := p.take("a caller")
		require.NoError(t, err)
		require.NotNil(t, conn, "neither a connection nor an error")
		etcdtest.Take(t, conn.link.calls.Context().Done(), "the end of the connection")
		require.ErrorContains(t, conn.link.calls.Cause(), "did not answer")
		conn.done()
		require.NoError(t, etcdtest.Take(t, aborted, "the abort"))
	}
	require.Empty(t, p.shares)
	follower.answers("hello")
	require.EqualValues(t, 1, leader.calls.Load())
}

// A leader whose end of the connection reads nothing does not delay the next one.
func TestRouteChangesAlthoughTheLastLeaderIsFrozen(t *testing.T) {
	var way network
	_, follower := pair(t, echoing, way.join)
	follower.answers("")
	way.stuck.Store(true)
	defer way.stuck.Store(false)
	_, err := follower.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
	require.Error(t, err)
	begun := time.Now()
	follower.leads(8, echoing)
	require.Less(t, time.Since(begun), 3*time.Second, "gRPC takes five to close the connection")
}

// A leader whose state is not known is tried, also if it announced before that it serves nothing yet.
//
// Fails if the last announcement counts after the leader has begun to refuse the question.
func TestLeaderThatStopsToAnnounce(t *testing.T) {
	var way network
	var denied atomic.Bool
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if denied.Load() && info.FullMethod == healthpb.Health_Watch_FullMethodName {
				return status.Error(codes.PermissionDenied, "by the test")
			}
			return handle(srv, stream)
		}))
	})
	follower := newNode(t, "follower", way.join)
	follower.follows(leader, 7)
	follower.learns()
	follower.routed(func(to *route) bool { return to.Leaving })
	denied.Store(true)
	way.cut()
	follower.routed(func(to *route) bool { return !to.Leaving })
	leader.leads(7, echoing)
	follower.answers("hello")
}
