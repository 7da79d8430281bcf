package curator

import (
	"bytes"
	"context"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// sized sends a message of size bytes in all, as a unary call and in a stream, and requires the
// code of both. In the stream a small message comes first.
func sized(t *testing.T, n *node, size int, want codes.Code, options ...grpc.CallOption) {
	t.Helper()
	payload := strings.Repeat("x", size-1-protowire.SizeVarint(uint64(size-2)))
	require.True(t, len(wrapped(payload)) == size) // not Len: that prints all of it
	options = append(options, grpc.MaxCallRecvMsgSize(math.MaxInt))
	err := n.call(payload, options...)
	stream := n.open(bidiMethod, options...)
	stream.send("first")
	stream.expect("first")
	_ = stream.SendMsg(&message{Value: []byte(payload)}) // the end of the stream has the result
	_ = stream.CloseSend()
	require.Equal(t, []codes.Code{want, want}, []codes.Code{status.Code(err), status.Code(stream.end())})
}

// A message over the limit is refused at the node that receives it, called directly and forwarded,
// compressed or not; a message of exactly the limit is accepted. gRPC's own option for the limit is
// applied later, and overrides it.
func TestMaxMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit  int
		change func(*Config)
	}{
		"default": {DefaultMaxMessage, func(*Config) {}},
		"lower":   {1000, func(cfg *Config) { cfg.MaxMessage = 1000 }},
		"higher":  {5 << 20, func(cfg *Config) { cfg.MaxMessage = 5 << 20 }},
		"gRPC's own": {2000, func(cfg *Config) {
			cfg.MaxMessage, cfg.ServerOptions = 10, append(cfg.ServerOptions, grpc.MaxRecvMsgSize(2000))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, echoing, func(t *testing.T, n, _ *node) {
				compressions := [][]grpc.CallOption{nil}
				if name == "lower" { // large messages take long under the race detector
					compressions = append(compressions, []grpc.CallOption{grpc.UseCompressor(gzip.Name)})
				}
				for _, options := range compressions {
					sized(t, n, tc.limit, codes.OK, options...)
					sized(t, n, tc.limit+1, codes.ResourceExhausted, options...)
				}
			}, tc.change)
		})
	}
}

// If the leader's limit is lower than the follower's, it counts: the leader's refusal is passed on,
// as the call's own fault, and the call is not tried again.
func TestMaxMessageOfTheLeaderIsFinal(t *testing.T) {
	var refused atomic.Int64
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxMessage = 1000 })
	leader.leads(7, echoing)
	follower := newNode(t, "follower", refusals(&refused))
	follower.follows(leader, 7)
	for range 2 { // before the method is known to be unary, and after
		sized(t, follower, 1000, codes.OK)
		sized(t, follower, 1001, codes.ResourceExhausted)
		refused.Store(0)
		requireCode(t, codes.ResourceExhausted, follower.call(strings.Repeat("x", 2000)))
		require.EqualValues(t, 1, refused.Load(), "it was sent again")
	}
}

// A message over the limit of the node that the caller is connected to ends the call, here and at
// the leader.
func TestMessageOverTheLimit(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	leader := newNode(t, "leader")
	leader.leads(7, &script{stream: func(stream grpc.ServerStream) error {
		began <- struct{}{}
		_, err := received(stream)
		ended <- err
		return err
	}})
	follower := newNode(t, "follower", func(cfg *Config) { cfg.MaxMessage = 1 << 10 })
	follower.follows(leader, 7)
	stream := follower.open(bidiMethod)
	etcdtest.Take(t, began, "the handler")
	stream.send(string(make([]byte, 2<<10)))
	requireCode(t, codes.ResourceExhausted, stream.end())
	requireCode(t, codes.Canceled, etcdtest.Take(t, ended, "the handler's end"))
}

// A message that is too large takes no memory at a node, whatever length its frame has, and however
// small it was when it arrived.
func TestOversizedMessagesTakeNoMemory(t *testing.T) {
	leader, follower := pair(t, echoing)
	client := plainHTTP(t)
	bomb := onWire(1, bytes.Repeat(zipped(make([]byte, 1<<20)), 256)) // 256 MiB out of 256 KiB
	require.Less(t, len(bomb), 1<<20)
	claim := append([]byte{0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 100)...) // the first of 4 GiB
	for name, body := range map[string][]byte{"a bomb": bomb, "a claim": claim} {
		for _, n := range []*node{leader, follower} {
			runtime.GC()
			var first, last runtime.MemStats
			runtime.ReadMemStats(&first)
			const times = 4
			for range times {
				_, code := post(t, client, n.address, bidiMethod, "gzip", body, 0)
				require.Equal(t, "8", code, name) // RESOURCE_EXHAUSTED
			}
			runtime.ReadMemStats(&last)
			took := (last.TotalAlloc - first.TotalAlloc) / times
			require.Less(t, took, uint64(8*DefaultMaxMessage), "%s at the %s", name, n.cfg.Elector.NodeID)
		}
	}
}

// A call with more metadata than the limit is refused. (One that fits a follower but not the leader,
// because of the hop's own metadata, is in tests/badinput.)
func TestMaxMetadata(t *testing.T) {
	much := func(n *node, size int) error {
		_, err := n.unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", size)), "")
		return err
	}
	for name, limit := range map[string]int{"default": DefaultMaxMetadata, "lower": 4 << 10, "higher": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, echoing, func(t *testing.T, n, leader *node) {
				require.NoError(t, much(n, limit-2048))
				requireCode(t, codes.Internal, much(n, limit))
				require.EqualValues(t, 1, leader.calls.Load())
			}, func(cfg *Config) {
				if name != "default" {
					cfg.MaxMetadata = limit
				}
			})
		})
	}
}

// Calls over the limit of a connection wait until one of its calls ends; other connections are not
// affected. A follower's calls share a connection, and wait there as well.
func TestMaxStreams(t *testing.T) {
	leader, follower := newNode(t, "leader", func(cfg *Config) { cfg.MaxStreams = 2 }), newNode(t, "follower")
	leader.leads(7, echoing)
	follower.follows(leader, 7)
	for _, n := range []*node{leader, follower} {
		taken := n.take(2)
		_, err := n.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
		requireCode(t, codes.DeadlineExceeded, err)
		third := n.ask("")
		require.NoError(t, dialTo(t, leader.address).Invoke(etcdtest.Context(t), unaryMethod, &message{}, &message{}))
		taken[0].closes()
		require.NoError(t, etcdtest.Take(t, third, "the third call"))
		taken[1].closes()
	}
}

// Answers have no limit, unless a follower has one among its options. Then the call ends, and it is
// unknown whether it was carried out; the connection and other calls continue.
func TestLargeAnswers(t *testing.T) {
	leader, follower := pair(t, &script{unary: func(_ context.Context, in *message) (*message, error) {
		return &message{Value: make([]byte, len(in.GetValue())<<10)}, nil
	}})
	large, unlimited := strings.Repeat("x", 8<<10), grpc.MaxCallRecvMsgSize(math.MaxInt) // 8 MiB come back
	careful := newNode(t, "careful", func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<20)))
	})
	careful.follows(leader, 7)
	for range 2 { // before the method is known to be unary, and after
		for _, n := range []*node{leader, follower} {
			out, err := n.unary(etcdtest.Context(t), large, unlimited)
			require.NoError(t, err)
			require.True(t, len(out) == 8<<20)
		}
		require.NoError(t, careful.call("fits"))
		err := careful.call(large, unlimited)
		require.False(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		require.ErrorContains(t, err, "larger than max")
	}
}

// Services that cannot be served are refused, and nothing of them is registered. New refuses them for
// Config.Local and Config.Reads; bad input of other kinds is in tests/badinput.
func TestBadServices(t *testing.T) {
	nothing, silent, twice, strict := describe("test.Nothing"), describe("test.Silent"), describe("test.Twice"), describe("test.Strict")
	nothing.Methods[0].Handler = nil
	silent.Streams[0].Handler = nil
	twice.Streams[0].StreamName = "Unary"
	strict.HandlerType = (*interface{ Missing() })(nil)
	for name, desc := range map[string]*grpc.ServiceDesc{
		"no service":           nil,
		"registered before":    describe("test.Script"),
		"a local one":          describe("test.Local"),
		"no name":              describe(""),
		"no handler":           nothing,
		"no stream handler":    silent,
		"a method twice":       twice,
		"not the service's":    strict,
		"the same, once again": describe("test.Script"),
	} {
		s := newServices(map[string]bool{"test.Local": true}, func(error) { require.Fail(t, "it is not late") })
		s.RegisterService(describe("test.Script"), echoing)
		s.RegisterService(desc, echoing)
		s.RegisterService(describe("test.Fine"), echoing)
		methods, err := s.close()
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
		require.Len(t, methods, 8, name)
	}
	var late error
	s := newServices(nil, func(err error) { late = err })
	_, err := s.close()
	require.NoError(t, err)
	s.RegisterService(describe("test.Script"), echoing)
	require.ErrorIs(t, late, eldest.ErrInvalid)
	require.ErrorContains(t, late, "after Config.Services, Config.Reads or Config.Local had returned")

	cfg := newNode(t, "n", newCopied(0).reads("Unary")).cfg
	require.Equal(t, []int{DefaultMaxMessage, DefaultMaxMetadata, DefaultMaxStreams}, []int{cfg.MaxMessage, cfg.MaxMetadata, cfg.MaxStreams})
	bad := cfg
	bad.MaxStreams = math.MaxInt32 + 1
	_, err = New(bad)
	require.ErrorContains(t, err, "Config.MaxStreams 2147483648 is negative, or more than 2147483647")
	for name, want := range map[string]string{
		"": "without a name", "eldest.curator.v1.Curator": "curator's own", "grpc.health.v1.Health": "curator's own",
		"test.Script": "by Config.Local before", // it is one of Reads
	} {
		bad := cfg
		bad.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe(name), echoing) }
		_, err := New(bad)
		var op *eldest.OpError
		require.ErrorAs(t, err, &op, name)
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
		require.ErrorContains(t, err, want)
	}
	for want, reads := range map[string]func(r grpc.ServiceRegistrar){
		`for method "Missing"`: func(r grpc.ServiceRegistrar) { Only(r, "Missing").RegisterService(describe("test.Script"), echoing) },
		`has method "Unary" twice`: func(r grpc.ServiceRegistrar) {
			Only(r, "Unary", "Unary").RegisterService(describe("test.Script"), echoing)
		},
		`"test.Script" is registered twice`: func(r grpc.ServiceRegistrar) {
			for range 2 {
				Only(r, "Unary").RegisterService(describe("test.Script"), echoing)
			}
		},
		"without a name": func(r grpc.ServiceRegistrar) { Only(r).RegisterService(nil, nil) },
	} {
		bad := cfg
		bad.Reads = reads
		_, err := New(bad)
		require.ErrorIs(t, err, eldest.ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
}

// A message for which there is no room arrives while the call waits for a connection to the next leader:
// the answer says so, also if that leader has begun the call meanwhile.
//
// Fails if the answer does not say that a node has refused.
func TestNoRoomWhileConnecting(t *testing.T) {
	dialling, goOn := make(chan struct{}, 10), make(chan struct{})
	events, came := make(chan CallEvent, 1), make(chan struct{}, 1)
	var slow atomic.Bool
	var refused atomic.Int64
	follower := newNode(t, "follower", patient, func(cfg *Config) {
		cfg.MaxHeld = 1000
		cfg.Hooks.Answered = func(e CallEvent) { events <- e }
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StatsHandler(observed(func(s stats.RPCStats) {
			if _, ok := s.(*stats.InPayload); ok {
				came <- struct{}{}
			}
		})))
	}, refusals(&refused), through(func(c net.Conn) net.Conn {
		if slow.Load() {
			dialling <- struct{}{}
			<-goOn
		}
		return c
	}))
	slowly := intercept(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil }) // until the follower receives
	first, next := newNode(t, "first", slowly), newNode(t, "next")
	first.leadsWhile(7, echoing, expired)
	next.leads(8, echoing)
	follower.follows(first, 7)
	stream := follower.open(bidiMethod)
	etcdtest.Eventually(t, func() bool { return refused.Load() >= 3 }, "the message is being received, and the call waits")
	slow.Store(true)
	follower.follows(next, 8)
	etcdtest.Take(t, dialling, "a connection is made")
	follower.holds(1, "it waits for the connection")
	stream.send(strings.Repeat("x", 2000))
	etcdtest.Take(t, came, "the message")
	time.Sleep(20 * time.Millisecond) // for the node to find that there is no room
	close(goOn)
	err := stream.end()
	requireCode(t, codes.ResourceExhausted, err)
	lost, ok := LostLeadership(err, "test")
	require.True(t, ok, "%v", err)
	require.False(t, lost.GetNothingApplied())
	require.Equal(t, RefusalBusy, etcdtest.Take(t, events, "the event").Refusal)
	follower.empty()
}

// asked is a caller's stream that calls before each time it is asked for its context.
type asked struct {
	grpc.ServerStream
	before func()
}

func (a asked) Context() context.Context {
	a.before()
	return a.ServerStream.Context()
}

// The same if the message arrives when the next attempt has just found that none was lost.
//
// Fails if only the beginning of an attempt looks.
func TestNoRoomAtTheBeginningOfAnAttempt(t *testing.T) {
	var refused atomic.Int64
	var armed atomic.Bool
	send, came := make(chan struct{}), make(chan struct{}, 1)
	follower := newNode(t, "follower", patient, func(cfg *Config) {
		cfg.MaxHeld = 1000
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StatsHandler(observed(func(s stats.RPCStats) {
			if _, ok := s.(*stats.InPayload); ok {
				came <- struct{}{}
			}
		})))
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, asked{stream, func() {
				if armed.CompareAndSwap(true, false) {
					send <- struct{}{}
					<-came
					time.Sleep(20 * time.Millisecond) // for the node to find that there is no room
				}
			}})
		}))
	}, refusals(&refused))
	slowly := intercept(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil }) // until the follower receives
	first := newNode(t, "first", slowly)
	first.leadsWhile(7, echoing, expired)
	follower.follows(first, 7)
	stream := follower.open(bidiMethod)
	etcdtest.Eventually(t, func() bool { return refused.Load() >= 3 }, "the message is being received, and the call waits")
	var once sync.Once
	follower.leadsWhile(8, echoing, func() bool { // the attempt reads the clock, then what was lost, then the context
		once.Do(func() { armed.Store(true) })
		return true
	})
	etcdtest.Take(t, send, "the attempt")
	stream.send(strings.Repeat("x", 2000))
	err := stream.end()
	requireCode(t, codes.ResourceExhausted, err)
	lost, ok := LostLeadership(err, "test")
	require.True(t, ok, "%v", err)
	require.False(t, lost.GetNothingApplied())
}
