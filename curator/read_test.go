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

// copied is a copy of the data at a node: what it answers begins with "copy".
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
		if err := replies(s, "copy"); err != nil {
			return err
		}
		return echoes(s)
	}
	return c
}

// reads has a node answer these methods from the copy.
func (c *copied) reads(methods ...string) func(*Config) {
	return func(cfg *Config) {
		cfg.Reads = func(r grpc.ServiceRegistrar) { Only(r, methods...).RegisterService(describe("test.Script"), &c.script) }
		cfg.ReadAge = func(context.Context) (time.Duration, error) { return time.Duration(c.age.Load()), c.err }
	}
}

// original is what the leader answers.
func original() *script {
	return &script{unary: echo, stream: func(s grpc.ServerStream) error {
		if err := replies(s, "original"); err != nil {
			return err
		}
		return echoes(s)
	}}
}

// requireRead calls a unary and a streaming method, and asserts who has answered: the
// header says so, or has nothing, where the caller did not ask.
func (n *node) requireRead(ctx context.Context, want ReadInfo, said bool) {
	n.t.Helper()
	for range 2 { // before it is known to be unary, and after
		var header metadata.MD
		out, err := n.unary(ctx, "x", grpc.Header(&header))
		require.NoError(n.t, err)
		n.requireHeader(header, want, said)
		require.Equal(n.t, map[bool]string{true: "copy of x", false: "x"}[want.Local], out)
	}
	f := n.open(ctx, bidiMethod)
	f.expect(map[bool]string{true: "copy", false: "original"}[want.Local])
	f.send("more")
	f.expect("more")
	header, err := f.Header()
	require.NoError(n.t, err)
	n.requireHeader(header, want, said)
	require.NoError(n.t, closed(f))
}

func (n *node) requireHeader(header metadata.MD, want ReadInfo, said bool) {
	n.t.Helper()
	got, ok := ReadFrom(header)
	require.Equal(n.t, said, ok, "%v", header)
	require.Equal(n.t, want, got, "another one answers than was allowed: %v", header)
	require.Equal(n.t, map[bool]int{true: 1, false: 0}[said], len(header[readKey]))
}

// A node answers from its own copy whoever allows it, if the copy is not older than that;
// everybody else is answered by the leader; and who has answered is always said to who asked.
func TestLocalReads(t *testing.T) {
	c := newCopied(1500 * time.Millisecond)
	leader, follower := newNode(t, "leader", c.reads("Unary", "Bidi")), newNode(t, "näch;ste \"b\"", c.reads("Unary", "Bidi"))
	leader.leads(7, original())
	follower.front.router.follow(leader.as(7))
	local, led := ReadInfo{Local: true, Node: follower.cfg.Elector.NodeID, Age: 1500 * time.Millisecond}, ReadInfo{Token: 7}
	for _, tc := range []struct {
		maxAge time.Duration
		want   ReadInfo
	}{
		{AnyAge, local},
		{AnyAge - 1, local},
		{2 * time.Second, local},
		{1500 * time.Millisecond, local},
		{1500*time.Millisecond - 1, led},
		{1500 * time.Nanosecond, led},
		{0, led},
		{-time.Hour, led},
		{math.MinInt64, led},
	} {
		follower.requireRead(AllowLocalRead(etcdtest.Context(t), tc.maxAge), tc.want, true)
		leader.requireRead(AllowLocalRead(etcdtest.Context(t), tc.maxAge), led, true)
	}

	// The last word of a caller counts.
	follower.requireRead(AllowLocalRead(AllowLocalRead(etcdtest.Context(t), AnyAge), 0), led, true)
	c.age.Store(int64(1500 * time.Nanosecond))
	follower.requireRead(AllowLocalRead(etcdtest.Context(t), 2*time.Microsecond), ReadInfo{Local: true, Node: local.Node, Age: 1500}, true)
	c.age.Store(0)
	follower.requireRead(AllowLocalRead(etcdtest.Context(t), 0), ReadInfo{Local: true, Node: local.Node}, true)

	for _, n := range []*node{leader, follower} { // who has not asked
		for _, age := range []time.Duration{0, time.Second} {
			c.age.Store(int64(age))
			calls := c.calls.Load()
			_, err := n.unary(etcdtest.Context(t), "")
			require.NoError(t, err)
			require.Equal(t, calls, c.calls.Load(), "a copy is read that nobody has allowed")
			n.requireRead(etcdtest.Context(t), ReadInfo{}, false)
		}
	}

	// What is not known to be of an age is too old for everybody.
	c.age.Store(-1)
	follower.requireRead(AllowLocalRead(etcdtest.Context(t), AnyAge), led, true)
	c.age.Store(0)
	c.err = errors.New("no news for long")
	follower.requireRead(AllowLocalRead(etcdtest.Context(t), AnyAge), led, true)
}

// Methods that are not among Reads are the leader's, also of a service that has some there;
// a node without Reads forwards all; and it is said.
func TestLocalReadsOfSomeMethods(t *testing.T) {
	c := newCopied(0)
	leader, follower, none := newNode(t, "leader"), newNode(t, "follower", c.reads("Server")), newNode(t, "none")
	leader.leads(7, original())
	for _, n := range []*node{follower, none} {
		n.front.router.follow(leader.as(7))
		n.requireRead(AllowLocalRead(etcdtest.Context(t), AnyAge), ReadInfo{Token: 7}, true)
		f := n.open(AllowLocalRead(etcdtest.Context(t), AnyAge), serverMethod)
		f.send("x")
		f.expect(map[*node]string{follower: "copy", none: "original"}[n])
		require.NoError(t, closed(f))
	}
	require.EqualValues(t, 1, c.calls.Load())
}

// A node that knows of no leader, has just lost its own tenure, or is stopping, has its copy
// still; what is too old for the caller waits for a leader as ever.
func TestLocalReadsWithoutALeader(t *testing.T) {
	c := newCopied(time.Second)
	n := newNode(t, "n", c.reads("Unary", "Bidi"), func(cfg *Config) { cfg.Wait = 50 * time.Millisecond })
	local := ReadInfo{Local: true, Node: "n", Age: time.Second}
	check := func() {
		n.requireRead(AllowLocalRead(etcdtest.Context(t), time.Minute), local, true)
		var header metadata.MD
		_, err := n.unary(AllowLocalRead(etcdtest.Context(t), time.Millisecond), "", grpc.Header(&header))
		require.True(t, requireRetry(t, err).GetNothingApplied())
		n.requireHeader(header, ReadInfo{}, false)
	}
	check()
	tenure := n.leads(7, original())
	n.requireRead(AllowLocalRead(etcdtest.Context(t), AnyAge), ReadInfo{Token: 7}, true)
	n.loses(tenure, errDeposed)
	check()
	n.front.router.stop(eldest.ErrClosed)
	check()
}

// A call that another node has forwarded is for the leader, and is served in its tenure or
// refused, whatever copies there are where it comes to.
func TestForwardedCallsReadNoCopy(t *testing.T) {
	c := newCopied(0)
	leader, other := newNode(t, "leader", c.reads("Unary")), newNode(t, "other", c.reads("Unary"))
	leader.leads(8, original())
	other.front.router.follow(leader.as(8))
	for _, n := range []*node{leader, other} { // one that leads no more, and one that never did
		_, err := n.unary(AllowLocalRead(claiming(etcdtest.Context(t), "follower", "7"), AnyAge), "")
		require.Error(t, err, "a forwarded call is answered from a copy")
		requireRetry(t, err)
	}
	require.Zero(t, c.calls.Load())
}

// An error of the service's comes with the header as well: whose word it is.
func TestWhoHasAnsweredWithAnError(t *testing.T) {
	missing := func(context.Context, *message) (*message, error) { return nil, status.Error(codes.NotFound, "none") }
	c := newCopied(time.Second)
	c.unary = missing
	c.stream = func(grpc.ServerStream) error { return status.Error(codes.NotFound, "none") }
	leader, follower := pair(t, &c.script, c.reads("Unary", "Bidi"))
	for _, n := range []*node{leader, follower} {
		for maxAge, want := range map[time.Duration]ReadInfo{AnyAge: {Local: true, Node: "follower", Age: time.Second}, 0: {Token: 7}} {
			if n == leader {
				want = ReadInfo{Token: 7}
			}
			ctx := AllowLocalRead(etcdtest.Context(t), maxAge)
			for range 2 {
				var header metadata.MD
				_, err := n.unary(ctx, "", grpc.Header(&header))
				require.Equal(t, codes.NotFound, status.Code(err))
				n.requireHeader(header, want, true)
			}
			f := n.open(ctx, bidiMethod)
			require.Equal(t, codes.NotFound, status.Code(f.end()))
			header, err := f.Header()
			require.NoError(t, err)
			n.requireHeader(header, want, true)
		}
	}
}

// Metadata that says neither is refused, at each node, before any handler; what says the same
// in other words is not.
func TestMalformedReads(t *testing.T) {
	c := newCopied(time.Second)
	leader, follower := pair(t, original(), c.reads("Unary", "Bidi"))
	for _, n := range []*node{leader, follower} {
		for _, said := range [][]string{
			{""}, {"leader"}, {"Local"}, {"local,"}, {"local;"}, {"local; max-age"}, {"local; max-age="}, {"local; max-age=2"},
			{"local; max-age=-1s"}, {"local; max-age=2s; max-age=3s"}, {"local; age=2s"}, {"; max-age=2s"},
			{"local; max-age=9999999999h"}, {"local", "local"}, {"local; age=1s; node=\"b\""},
		} {
			ctx := etcdtest.Context(t)
			for _, value := range said {
				ctx = metadata.AppendToOutgoingContext(ctx, readKey, value)
			}
			_, err := n.unary(ctx, "")
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%q: %v", said, err)
			require.Equal(t, codes.InvalidArgument, status.Code(n.open(ctx, bidiMethod).end()), "%q", said)
		}
		require.Zero(t, leader.calls.Load()+c.calls.Load())
	}
	for _, said := range []string{"local", "local;max-age=1s", "local ; max-age=1000ms", "local; max-age=+1h0m"} {
		_, err := follower.unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), readKey, said), "")
		require.NoError(t, err, "%q", said)
	}
	require.EqualValues(t, 4, c.calls.Load())
}

// Interceptors of both kinds are called around local reads: nobody gets past those that say
// who may call. They see what the caller has asked for.
func TestInterceptorsOfLocalReads(t *testing.T) {
	c := newCopied(0)
	var front, unary, stream, age atomic.Int64
	asked := func(ctx context.Context) bool {
		return len(metadata.ValueFromIncomingContext(ctx, readKey)) == 1
	}
	n := newNode(t, "n", c.reads("Unary", "Bidi"), func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if asked(s.Context()) {
				front.Add(1)
			}
			return handle(srv, s)
		}))
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
	n.requireRead(AllowLocalRead(etcdtest.Context(t), AnyAge), ReadInfo{Local: true, Node: "n"}, true)
	require.Equal(t, []int64{3, 2, 1, 3}, []int64{front.Load(), unary.Load(), stream.Load(), age.Load()})
}

// What cannot be served from a copy is refused by New.
func TestReadsThatCannotBe(t *testing.T) {
	c := newCopied(0)
	own := func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Script"), original()) }
	}
	for want, change := range map[string]func(*Config){
		"there is only one":           func(cfg *Config) { c.reads("Unary")(cfg); cfg.ReadAge = nil },
		"only one":                    func(cfg *Config) { c.reads("Unary")(cfg); cfg.Reads = nil },
		`method "Missing" of service`: c.reads("Unary", "Missing"),
		"is there twice":              c.reads("Unary", "Unary"),
		"every node answers itself":   func(cfg *Config) { c.reads("Unary")(cfg); own(cfg) },
		"a service without a name": func(cfg *Config) {
			c.reads()(cfg)
			cfg.Reads = func(r grpc.ServiceRegistrar) { Only(r).RegisterService(nil, nil) }
		},
		`"test.Script" is registered tw`: func(cfg *Config) {
			c.reads()(cfg)
			once := cfg.Reads
			cfg.Reads = func(r grpc.ServiceRegistrar) { once(r); once(r) }
		},
	} {
		n := newNode(t, "n")
		cfg := n.cfg
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, eldest.ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
	var late grpc.ServiceRegistrar
	n := newNode(t, "n", c.reads(), func(cfg *Config) { cfg.Reads = func(r grpc.ServiceRegistrar) { late = r } })
	late.RegisterService(describe("test.Script"), &c.script)
	require.Empty(t, n.front.reads.methods, "one that comes too late is served")
}

// A header that no curator wrote says nothing.
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
