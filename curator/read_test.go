package curator

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// copied is a copy of the data at a node: its answers begin with "copy".
type copied struct {
	script
	age   atomic.Int64 // a time.Duration
	err   error
	calls atomic.Int64
}

func newCopied(age time.Duration) *copied {
	c := &copied{}
	c.age.Store(int64(age))
	c.unary = func(_ context.Context, in *message) (*message, error) {
		c.calls.Add(1)
		return wrapperspb.Bytes([]byte("copy of " + string(in.GetValue()))), nil
	}
	c.stream = func(s grpc.ServerStream) error {
		c.calls.Add(1)
		return errors.Join(replies(s, "copy"), echoes(s))
	}
	return c
}

// reads makes a node answer these methods from the copy.
func (c *copied) reads(methods ...string) func(*Config) {
	return func(cfg *Config) {
		cfg.Reads = func(r grpc.ServiceRegistrar) { Only(r, methods...).RegisterService(describe("test.Script"), &c.script) }
		cfg.ReadAge = func(context.Context) (time.Duration, error) { return time.Duration(c.age.Load()), c.err }
	}
}

// original is the service at the leader.
var original = &script{unary: echo, stream: func(s grpc.ServerStream) error { return errors.Join(replies(s, "original"), echoes(s)) }}

// allowing is the context of a call that allows a copy.
func allowing(t testing.TB, maxAge time.Duration) context.Context {
	return AllowLocalRead(etcdtest.Context(t), maxAge)
}

// requireRead calls a unary and a streaming method, and asserts which node has answered. The header
// names it, or is empty if the caller did not allow a copy.
func (n *node) requireRead(ctx context.Context, want ReadInfo, said bool) {
	n.t.Helper()
	for range 2 { // before the method is known to be unary, and after
		var header metadata.MD
		out, err := n.unary(ctx, "x", grpc.Header(&header))
		require.NoError(n.t, err)
		n.requireHeader(header, want, said)
		require.Equal(n.t, map[bool]string{true: "copy of x", false: "x"}[want.Local], out)
	}
	f := n.openWith(ctx, bidiMethod)
	f.expect(map[bool]string{true: "copy", false: "original"}[want.Local])
	f.send("more")
	f.expect("more")
	header, err := f.Header()
	require.NoError(n.t, err)
	n.requireHeader(header, want, said)
	f.closes()
}

func (n *node) requireHeader(header metadata.MD, want ReadInfo, said bool) {
	n.t.Helper()
	got, ok := ReadFrom(header)
	require.Equal(n.t, said, ok, "%v", header)
	require.Equal(n.t, want, got, "another one answers than was allowed: %v", header)
	require.Equal(n.t, map[bool]int{true: 1, false: 0}[said], len(header[readKey]))
}

// A node answers from its own copy callers that allow it, if the copy is not older than that. The
// leader answers all others. A caller that has allowed a copy always receives which node has
// answered.
func TestLocalReads(t *testing.T) {
	const ms = time.Millisecond
	c := newCopied(1500 * ms)
	leader, follower := newNode(t, "leader", c.reads("Unary", "Bidi")), newNode(t, "näch;ste \"b\"", c.reads("Unary", "Bidi"))
	leader.leads(7, original)
	follower.follows(leader, 7)
	local := func(age time.Duration) ReadInfo {
		return ReadInfo{Local: true, Node: follower.cfg.Elector.NodeID, Age: age}
	}
	led := ReadInfo{Token: 7}
	for maxAge, want := range map[time.Duration]ReadInfo{
		AnyAge: local(1500 * ms), AnyAge - 1: local(1500 * ms), 2000 * ms: local(1500 * ms), 1500 * ms: local(1500 * ms),
		1500*ms - 1: led, 1500 * time.Nanosecond: led, 0: led, -time.Hour: led, math.MinInt64: led,
	} {
		follower.requireRead(allowing(t, maxAge), want, true)
		leader.requireRead(allowing(t, maxAge), led, true)
	}

	// The last AllowLocalRead counts.
	follower.requireRead(AllowLocalRead(allowing(t, AnyAge), 0), led, true)
	c.age.Store(1500)
	follower.requireRead(allowing(t, 2*time.Microsecond), local(1500), true)
	c.age.Store(0)
	follower.requireRead(allowing(t, 0), local(0), true)

	for _, n := range []*node{leader, follower} { // callers that have not allowed a copy
		for _, age := range []time.Duration{0, time.Second} {
			c.age.Store(int64(age))
			calls := c.calls.Load()
			require.NoError(t, n.call(""))
			require.Equal(t, calls, c.calls.Load(), "a copy is read that nobody has allowed")
			n.requireRead(etcdtest.Context(t), ReadInfo{}, false)
		}
	}

	// A copy of unknown age is too old for every caller.
	c.age.Store(-1)
	follower.requireRead(allowing(t, AnyAge), led, true)
	c.age.Store(0)
	c.err = errors.New("no news for long")
	follower.requireRead(allowing(t, AnyAge), led, true)
}

// Methods that are not in Reads go to the leader, also of a service that has others there. A node
// without Reads forwards all. The header names the node in each case.
func TestLocalReadsOfSomeMethods(t *testing.T) {
	c := newCopied(0)
	leader, follower, none := newNode(t, "leader"), newNode(t, "follower", c.reads("Server")), newNode(t, "none")
	leader.leads(7, original)
	for n, answers := range map[*node]string{follower: "copy", none: "original"} {
		n.follows(leader, 7)
		n.requireRead(allowing(t, AnyAge), ReadInfo{Token: 7}, true)
		f := n.openWith(allowing(t, AnyAge), serverMethod)
		f.send("x")
		f.expect(answers)
		f.closes()
	}
	require.EqualValues(t, 1, c.calls.Load())
}

// A node that has no known leader, has just lost its own tenure, or is stopping, still has its
// copy. If the copy is too old for the caller, the call waits for a leader as usual.
func TestLocalReadsWithoutALeader(t *testing.T) {
	n := newNode(t, "n", newCopied(time.Second).reads("Unary", "Bidi"), waits(50*time.Millisecond))
	check := func() {
		t.Helper()
		n.requireRead(allowing(t, time.Minute), ReadInfo{Local: true, Node: "n", Age: time.Second}, true)
		var header metadata.MD
		_, err := n.unary(allowing(t, time.Millisecond), "", grpc.Header(&header))
		require.True(t, requireRetry(t, err).GetNothingApplied())
		n.requireHeader(header, ReadInfo{}, false)
	}
	check()
	n.leads(7, original)
	n.requireRead(allowing(t, AnyAge), ReadInfo{Token: 7}, true)
	n.loses()
	check()
	n.router.Stop(eldest.ErrClosed)
	check()
}

// A call that another node has forwarded is for the leader. It is served in its tenure or
// refused, whatever copies there are where it comes to.
func TestForwardedCallsReadNoCopy(t *testing.T) {
	c := newCopied(0)
	leader, other := newNode(t, "leader", c.reads("Unary")), newNode(t, "other", c.reads("Unary"))
	leader.leads(8, original)
	other.follows(leader, 8)
	for _, n := range []*node{leader, other} { // one that leads in another tenure, and one that never led
		_, err := n.unary(AllowLocalRead(claiming(etcdtest.Context(t), "follower", "7"), AnyAge), "")
		require.Error(t, err, "a forwarded call is answered from a copy")
		requireRetry(t, err)
	}
	require.Zero(t, c.calls.Load())
}

// An error of the service has the header as well, which names the node that answered.
func TestWhoHasAnsweredWithAnError(t *testing.T) {
	c := newCopied(time.Second)
	c.unary = func(context.Context, *message) (*message, error) { return nil, status.Error(codes.NotFound, "none") }
	c.stream = func(grpc.ServerStream) error { return status.Error(codes.NotFound, "none") }
	everywhere(t, &c.script, func(t *testing.T, n, leader *node) {
		for maxAge, want := range map[time.Duration]ReadInfo{AnyAge: {Local: true, Node: "follower", Age: time.Second}, 0: {Token: 7}} {
			if n == leader {
				want = ReadInfo{Token: 7}
			}
			var header metadata.MD
			_, err := n.unary(allowing(t, maxAge), "", grpc.Header(&header))
			requireCode(t, codes.NotFound, err)
			n.requireHeader(header, want, true)
			f := n.openWith(allowing(t, maxAge), bidiMethod)
			requireCode(t, codes.NotFound, f.end())
			header, err = f.Header()
			require.NoError(t, err)
			n.requireHeader(header, want, true)
		}
	}, c.reads("Unary", "Bidi"))
}

// Malformed metadata is refused, before any handler. Other spellings of the same are accepted.
func TestMalformedReads(t *testing.T) {
	c := newCopied(time.Second)
	leader, follower := pair(t, original, c.reads("Unary", "Bidi"))
	call := func(n *node, said ...string) error {
		_, err := n.unary(metadata.NewOutgoingContext(etcdtest.Context(t), metadata.MD{readKey: said}), "")
		return err
	}
	for _, said := range [][]string{
		{""}, {"leader"}, {"Local"}, {"local,"}, {"local;"}, {"local; max-age"}, {"local; max-age="}, {"local; max-age=2"},
		{"local; max-age=-1s"}, {"local; max-age=2s; max-age=3s"}, {"local; age=2s"}, {"; max-age=2s"},
		{"local; max-age=9999999999h"}, {"local", "local"}, {"local; age=1s; node=\"b\""},
	} {
		for _, n := range []*node{leader, follower} {
			require.Equal(t, codes.InvalidArgument, status.Code(call(n, said...)), "%q", said)
			stream := n.openWith(metadata.NewOutgoingContext(etcdtest.Context(t), metadata.MD{readKey: said}), bidiMethod)
			require.Equal(t, codes.InvalidArgument, status.Code(stream.end()), "%q", said)
		}
	}
	require.Zero(t, leader.calls.Load()+c.calls.Load())
	for _, said := range []string{"local", "local;max-age=1s", "local ; max-age=1000ms", "local; max-age=+1h0m"} {
		require.NoError(t, call(follower, said), "%q", said)
	}
	require.EqualValues(t, 4, c.calls.Load())
}

// Interceptors of both kinds are called around local reads, so no caller bypasses those that
// authorise calls. They see what the caller has allowed.
func TestInterceptorsOfLocalReads(t *testing.T) {
	c := newCopied(0)
	var front, unary, stream, age atomic.Int64
	asked := func(ctx context.Context) bool {
		return len(metadata.ValueFromIncomingContext(ctx, readKey)) == 1
	}
	n := newNode(t, "n", c.reads("Unary", "Bidi"), intercept(func(ctx context.Context) error {
		if asked(ctx) {
			front.Add(1)
		}
		return nil
	}), func(cfg *Config) {
		cfg.Unary = func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if m, ok := in.(*message); ok && string(m.GetValue()) == "x" && info.FullMethod == unaryMethod && info.Server == &c.script && asked(ctx) {
				unary.Add(1)
			}
			return handle(ctx, in)
		}
		cfg.Stream = func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if info.FullMethod == bidiMethod && srv == &c.script && asked(s.Context()) {
				stream.Add(1)
			}
			return handle(srv, s)
		}
		known := cfg.ReadAge
		cfg.ReadAge = func(ctx context.Context) (time.Duration, error) {
			if name, _ := grpc.Method(ctx); name == unaryMethod || name == bidiMethod {
				age.Add(1)
			}
			return known(ctx)
		}
	})
	n.requireRead(allowing(t, AnyAge), ReadInfo{Local: true, Node: "n"}, true)
	require.Equal(t, []int64{3, 2, 1, 3}, []int64{front.Load(), unary.Load(), stream.Load(), age.Load()})
}

// A header that no curator wrote is not parsed.
func TestReadFromOddHeaders(t *testing.T) {
	for _, value := range []string{
		"", "local", "leader", "leader; token=", "leader; token=0", "leader; token=-1", "leader; token=x", "local; age=; node=\"b\"",
		"local; age=-1s; node=\"b\"", "local; age=1s", "local; age=1s; node=b", "local; age=1s; node=\"b", "local; max-age=1s", "age=1s; node=\"b\"",
		"1s; node=\"b\"",
	} {
		info, ok := ReadFrom(metadata.Pairs(readKey, value))
		require.False(t, ok, value)
		require.Zero(t, info, value)
	}
	_, ok := ReadFrom(metadata.Pairs(readKey, "leader; token=7", readKey, "leader; token=7"))
	require.False(t, ok, "it is there twice")
	_, ok = ReadFrom(nil)
	require.False(t, ok)
	info, ok := ReadFrom(metadata.Pairs(readKey, `local; age=1.204s; node="b"`))
	require.True(t, ok)
	require.Equal(t, ReadInfo{Local: true, Node: "b", Age: 1204 * time.Millisecond}, info)
}
