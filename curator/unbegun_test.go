package curator

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// lame is a tenure whose node refuses what comes, and does not know it yet: nobody is told.
func (n *node) lame(t testing.TB, s *script) {
	t.Helper()
	tenure := n.tenure(7, s)
	tenure.holds = func() bool { return false }
	n.front.router.lead(tenure)
}

// Row 62: what a leader refuses before it begins waits at the follower for the next leader, and
// goes there as it came: unary calls, and streams of which some messages had left.
//
// Broken by passing the refusal on: in a planned stop 44 of 97 calls failed, none of which had begun.
func TestRow62RefusedBeforeItBegan(t *testing.T) {
	s := &script{unary: echo, stream: echoes}
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known %v", known), func(t *testing.T) {
			last, next := newNode(t, "last"), newNode(t, "next")
			var refused atomic.Int64
			follower := newNode(t, "follower", func(cfg *Config) {
				cfg.Wait = etcdtest.Patience
				cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(trailers{&refused}))
			})
			last.lame(t, s)
			follower.front.router.follow(last.as(7))
			if known {
				follower.front.router.Now().peer.unary.learn(unaryMethod)
			}
			unary := asking(func() error {
				out, err := follower.unary(etcdtest.Context(t), "hello")
				if err == nil && out != "hello" {
					err = fmt.Errorf("the message was lost: %q", out)
				}
				return err
			})
			var streams []*flow
			for range 3 {
				stream := follower.open(etcdtest.Context(t), bidiMethod)
				for i := range 5 {
					stream.send(fmt.Sprint(i))
				}
				streams = append(streams, stream)
			}
			etcdtest.Eventually(t, func() bool { return refused.Load() >= 8 || len(unary) == 1 }, "each is refused, and tried again")
			next.leads(8, s)
			follower.front.router.follow(next.as(8))
			require.NoError(t, etcdtest.Take(t, unary, "the answer"))
			for _, stream := range streams {
				for i := range 5 {
					stream.expect(fmt.Sprint(i))
				}
				stream.send("more")
				stream.expect("more")
				require.NoError(t, stream.CloseSend())
				require.NoError(t, stream.end())
			}
			require.Zero(t, last.calls.Load())
			require.EqualValues(t, 4, next.calls.Load(), "each once")
			etcdtest.Eventually(t, func() bool { calls, bytes := follower.front.lobby.load(); return calls+bytes == 0 }, "nothing is held")
		})
	}
}

// Row 62: so does a stream that has sent as much as flow control lets through.
func TestRow62AFullWindowIsSentAgain(t *testing.T) {
	t.Parallel()
	s := &script{stream: echoes}
	stalled := make(chan struct{})
	last, next := newNode(t, "last", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/test.") {
				<-stalled
			}
			return handler(srv, stream)
		}))
	}), newNode(t, "next")
	last.lame(t, s)
	follower := newNode(t, "follower", func(cfg *Config) { cfg.Wait = etcdtest.Patience })
	follower.front.router.follow(last.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	var sent atomic.Int64
	const messages = 200
	sending := asking(func() error {
		for i := range messages {
			if err := stream.SendMsg(wrapperspb.Bytes([]byte(fmt.Sprintf("%d%20000d", i, 0)))); err != nil {
				return err
			}
			sent.Add(1)
		}
		return stream.CloseSend()
	})
	settled(t, &sent)
	close(stalled)
	next.leads(8, s)
	follower.front.router.follow(next.as(8))
	for i := range messages {
		stream.expect(fmt.Sprintf("%d%20000d", i, 0))
	}
	require.NoError(t, stream.end())
	require.NoError(t, etcdtest.Take(t, sending, "the sender"))
}

// Row 62: the next leader may be the follower itself.
func TestRow62RefusedBeforeItBeganAndServedHere(t *testing.T) {
	s := &script{unary: echo, stream: echoes}
	last, n := newNode(t, "last"), newNode(t, "n", func(cfg *Config) { cfg.Wait = etcdtest.Patience })
	last.lame(t, s)
	n.front.router.follow(last.as(7))
	stream := n.open(etcdtest.Context(t), bidiMethod)
	stream.send("one")
	unary := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Eventually(t, func() bool { calls, _ := n.front.lobby.load(); return calls == 2 }, "both wait")
	n.leads(8, s)
	require.NoError(t, etcdtest.Take(t, unary, "the answer"))
	stream.send("two")
	stream.expect("one")
	stream.expect("two")
	require.NoError(t, stream.CloseSend())
	require.NoError(t, stream.end())
}

// What a service says, and what had begun, goes nowhere else: whatever it looks like.
func TestRefusalOfTheServiceIsFinal(t *testing.T) {
	s := &script{stream: func(stream grpc.ServerStream) error {
		stream.SetTrailer(map[string][]string{servedKey: {"7"}})
		return status.Error(codes.Unavailable, "the service's own")
	}}
	leader, follower := pair(t, s)
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	require.ErrorContains(t, stream.end(), "the service's own")
	require.EqualValues(t, 1, leader.calls.Load(), "it was called twice")
}

// A stream of which more has left than is kept, because its leader has larger windows than
// other curators, is told so, and its caller may send it again.
func TestMoreHadLeftThanIsKept(t *testing.T) {
	enough := make(chan struct{})
	var received atomic.Int64
	last := newNode(t, "last", func(cfg *Config) {
		// Or else no more leaves than is kept.
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StaticStreamWindowSize(4*streamWindow), grpc.StaticConnWindowSize(8*streamWindow))
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/test.") {
				<-enough
			}
			return handler(srv, stream)
		}))
	})
	last.lame(t, &script{stream: echoes})
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = time.Hour
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(outgoing{trailers{}, &received}))
	})
	follower.front.router.follow(last.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	for range 4 {
		stream.send(strings.Repeat("x", replayed/2))
	}
	etcdtest.Eventually(t, func() bool { return received.Load() >= 4 }, "the messages have left")
	close(enough)
	require.True(t, requireRetry(t, stream.end()).GetNothingApplied())
}

// Row 62: a leader that stops says so first, and new calls do not even go there. A leader
// that serves again is called again.
func TestRow62AnnouncedStop(t *testing.T) {
	var came atomic.Int64
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if info.FullMethod == unaryMethod {
				came.Add(1)
			}
			return handler(srv, stream)
		}))
	})
	tenure := leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower", func(cfg *Config) { cfg.Wait = etcdtest.Patience })
	follower.front.router.follow(leader.as(7))
	_, err := follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	leader.front.router.leave(tenure, errDeposed)
	etcdtest.Eventually(t, func() bool { return follower.front.router.Now().leaving }, "the follower knows")
	waits := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Eventually(t, func() bool { calls, _ := follower.front.lobby.load(); return calls == 1 }, "it waits")
	follower.front.router.follow(leader.as(7)) // which is no news
	require.EqualValues(t, 1, came.Load(), "it went to a leader that stops")
	leader.front.router.lead(tenure)
	require.NoError(t, etcdtest.Take(t, waits, "the answer"))
	require.EqualValues(t, 2, came.Load())
}

// Row 64: a node that is stopping takes no more calls, and says so to load balancers at once.
func TestRow64RoleOfANodeThatStops(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n")
	p.stand(t)
	p.becomes(t, elector.Leading)
	require.Equal(t, 200, p.role(elector.Leading, "GET").Code)
	p.stopping()
	for _, role := range []elector.Role{elector.Leading, elector.Following, elector.Neither} {
		answer := p.role(role, "GET")
		require.Equal(t, 503, answer.Code, "%v", role)
		require.Contains(t, answer.Body.String(), `"role":"leading"`, "what it is, it still is")
	}
}
