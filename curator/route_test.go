package curator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What a route makes of a call, all cases.
func TestDecide(t *testing.T) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	holds := func() bool { return true }
	leading := &route{tenure: newTenure(context.Background(), "test", 7, holds), known: 7}
	ended := &route{tenure: newTenure(dead, "test", 7, holds), known: 7}
	late := &route{tenure: newTenure(context.Background(), "test", 7, func() bool { return false }), known: 7}
	following := &route{peer: &peer{}, known: 7}
	neither := &route{reason: errDeposed, known: 7}
	over := &route{reason: errDeposed, known: 7, over: true}
	for _, c := range []struct {
		name  string
		route *route
		// of a caller's call, and of one forwarded to an older, to this, to a newer tenure
		want [4]routing.Decision
	}{
		{"leading", leading, [4]routing.Decision{routing.Serve, routing.Refuse, routing.Serve, routing.Refuse}},
		{"ended", ended, [4]routing.Decision{routing.Wait, routing.Refuse, routing.Refuse, routing.Refuse}},
		{"past its deadline", late, [4]routing.Decision{routing.Wait, routing.Refuse, routing.Refuse, routing.Refuse}},
		{"following", following, [4]routing.Decision{routing.Forward, routing.Refuse, routing.Refuse, routing.Doubt}},
		{"neither", neither, [4]routing.Decision{routing.Wait, routing.Refuse, routing.Refuse, routing.Wait}},
		{"over", over, [4]routing.Decision{routing.Refuse, routing.Refuse, routing.Refuse, routing.Refuse}},
	} {
		for i, token := range []eldest.Token{0, 6, 7, 8} {
			h := hop{token: token, from: "other"}
			require.Equal(t, c.want[i], c.route.Decide(token), "%s, token %d", c.name, token)
			if c.want[i] == routing.Refuse {
				require.Error(t, c.route.refusal(h, "n"))
			}
			require.True(t, c.route.peer != nil || c.route == leading || c.route.why() != nil, c.name)
		}
	}
}

// hopping returns a context of a call that was forwarded.
func hopping(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, hopKey, token, fromKey, "other")
}

// Row 47: two followers that take each other for the leader end it after one hop, as
// does a node that takes itself for another.
func TestRequirement47OneHop(t *testing.T) {
	t.Parallel()
	// A node that is told of a tenure newer than any it knows may have won that itself,
	// and waits for it, but not for long.
	soonOver := func(cfg *Config) { cfg.Wait = 500 * time.Millisecond } // a connection is had before that, on a busy machine, too
	a, b := newNode(t, "a", soonOver), newNode(t, "b", soonOver)
	for _, tokens := range [][2]eldest.Token{{7, 7}, {9, 8}, {10, 11}} { // as a and as b see it
		a.front.router.follow(b.as(tokens[0]))
		b.front.router.follow(a.as(tokens[1]))
		begun := time.Now()
		for _, n := range []*node{a, b} {
			_, err := n.unary(etcdtest.Context(t), "")
			require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
			require.ErrorContains(t, err, "which follows node")
			stream := n.open(etcdtest.Context(t), bidiMethod)
			_ = stream.SendMsg(&message{}) // it may be over by now
			requireRetry(t, stream.end())
		}
		require.Less(t, time.Since(begun), DefaultWait, "somebody waited")
	}
	c := newNode(t, "c", soonOver)
	c.front.router.follow(c.as(7))
	_, err := c.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
}

// A forwarded call is served in the tenure that it was meant for, or not at all.
func TestForwardedForAnotherTenure(t *testing.T) {
	s := &script{unary: echo}
	leader := newNode(t, "leader")
	leader.leads(7, s)
	follower := newNode(t, "follower", func(cfg *Config) { cfg.Wait = 100 * time.Millisecond })
	follower.front.router.follow(leader.as(6))
	_, err := follower.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
	require.ErrorContains(t, err, `node "follower" forwarded to "leader", which leads, but with token 7 instead of 6`)
	leader.loses(leader.front.router.Now().tenure, errDeposed)
	follower.front.router.follow(leader.as(7))
	_, err = follower.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
	require.ErrorContains(t, err, "which leads no more")
	require.Zero(t, leader.calls.Load())
}

// A follower may hear of a tenure before it is set up: its first calls wait for that.
func TestForwardedToATenureThatIsBeingSetUp(t *testing.T) {
	var came atomic.Int64
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			came.Add(1)
			return handler(srv, stream)
		}))
	})
	follower := newNode(t, "follower")
	follower.front.router.follow(leader.as(7))
	done := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Eventually(t, func() bool { return came.Load() > 0 }, "the call comes")
	for range 3 { // nothing of this is the tenure
		leader.front.router.neither(errors.New("the tenure begins"))
	}
	select {
	case err := <-done:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	leader.leads(7, &script{unary: echo})
	require.NoError(t, etcdtest.Take(t, done, "the answer"))
}

// Row 46: while nobody is known calls wait, and then go wherever they belong.
func TestRequirement46WaitForALeader(t *testing.T) {
	s := &script{unary: echo, stream: echoes}
	leader, n := newNode(t, "leader"), newNode(t, "n")
	leader.leads(7, s)
	for name, becomes := range map[string]func(){
		"following": func() { n.front.router.follow(leader.as(7)) },
		"leading":   func() { n.leads(8, s) },
	} {
		n.front.router.neither(errors.New("not yet"))
		unary := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
		stream := n.open(etcdtest.Context(t), bidiMethod)
		stream.send("hello")
		becomes()
		require.NoError(t, etcdtest.Take(t, unary, name))
		stream.expect("hello")
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.end())
	}
}

// Row 46: the wait ends with the caller, or the bound, or the node.
func TestRequirement46WaitEnds(t *testing.T) {
	n := newNode(t, "n", func(cfg *Config) { cfg.Wait = 20 * time.Millisecond })
	_, err := n.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.ErrorContains(t, err, "no leader is known after 20ms")
	require.ErrorContains(t, err, "no Run is going on", "the reason is said")

	n = newNode(t, "n")
	_, err = n.unary(etcdtest.ContextFor(t, 20*time.Millisecond), "")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	done := asking(func() error { _, err := n.unary(ctx, ""); return err })
	cancel()
	require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, done, "the caller")))

	gone, leave := context.WithCancelCause(context.Background())
	leave(errDeposed)
	begun := time.Now()
	_, _, err = n.front.router.Next(gone, 0, begun.Add(time.Hour))
	require.ErrorIs(t, err, errDeposed, "nothing waits for a caller who is gone")
	n.front.router.Pause(gone, n.front.router.Now(), time.Hour, begun.Add(time.Hour))
	require.Less(t, time.Since(begun), etcdtest.Patience)

	stream := n.open(etcdtest.Context(t), bidiMethod)
	require.Nil(t, n.front.router.stop(fmt.Errorf("%w: stopping", eldest.ErrClosed)))
	requireRetry(t, stream.end())
	_, err = n.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
	require.ErrorContains(t, err, "stopping")

	// What comes late changes nothing.
	n.front.router.follow(n.as(7))
	n.front.router.neither(errDeposed)
	n.leads(8, &script{unary: echo})
	_, err = n.unary(etcdtest.Context(t), "")
	requireRetry(t, err)
}

// The hop: what can be read of it, and what cannot is refused.
func TestHop(t *testing.T) {
	n := newNode(t, "n")
	n.leads(7, &script{unary: echo})
	for token, want := range map[string]codes.Code{
		"7": codes.OK, "8": codes.Unavailable, "1": codes.Unavailable, "9223372036854775807": codes.Unavailable,
		"0": codes.InvalidArgument, "-7": codes.InvalidArgument, "": codes.InvalidArgument, "seven": codes.InvalidArgument,
		"7\x20": codes.InvalidArgument, "9223372036854775808": codes.InvalidArgument,
	} {
		_, err := n.unary(hopping(etcdtest.Context(t), token), "")
		require.Equal(t, want, status.Code(err), "%q: %v", token, err)
	}
	_, err := n.unary(hopping(hopping(etcdtest.Context(t), "7"), "7"), "")
	require.Equal(t, codes.InvalidArgument, status.Code(err), "two hops")
}

// Statuses become routes: never to oneself, never to nowhere. (Who leads, the tenure
// says.)
func TestWhom(t *testing.T) {
	_, err := whom(elector.Status{}, "me")
	require.ErrorIs(t, err, eldest.ErrNoLeader)
}
