package curator

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Whoever asks for no limits has some; and what cannot be one is refused.
func TestLimitsHaveDefaults(t *testing.T) {
	n := newNode(t, "n")
	require.Equal(t, DefaultMaxMessage, n.cfg.MaxMessage)
	require.Equal(t, DefaultMaxMetadata, n.cfg.MaxMetadata)
	require.Equal(t, DefaultMaxStreams, n.cfg.MaxStreams)
	cfg := n.cfg
	cfg.MaxStreams = math.MaxInt32 + 1
	_, err := New(cfg)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, "Config.MaxStreams")
}

// sized sends a message of so many bytes in all, as a unary call and in a stream, and
// returns the codes of both; a small one comes first in the stream.
func sized(t *testing.T, n *node, size int, options ...grpc.CallOption) []codes.Code {
	t.Helper()
	payload := strings.Repeat("x", size-1-protowire.SizeVarint(uint64(size-2)))
	require.True(t, len(wrapped(payload)) == size) // not Len: that prints all of it
	_, err := n.unary(etcdtest.Context(t), payload, append(options, grpc.MaxCallRecvMsgSize(math.MaxInt))...)
	stream := n.open(etcdtest.Context(t), bidiMethod, append(options, grpc.MaxCallRecvMsgSize(math.MaxInt))...)
	stream.send("first")
	stream.expect("first")
	_ = stream.SendMsg(&message{Value: []byte(payload)}) // the stream's end says what became of it
	_ = stream.CloseSend()
	return []codes.Code{status.Code(err), status.Code(stream.end())}
}

// A message over the limit is refused where it comes in, called directly and forwarded,
// compressed or not; one that meets the limit passes.
func TestMaxMessage(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"default": DefaultMaxMessage, "lower": 1000, "higher": 5 << 20} {
		t.Run(name, func(t *testing.T) {
			s := &script{unary: echo, stream: echoes}
			everywhere(t, s, func(t *testing.T, n *node) {
				compressions := [][]grpc.CallOption{nil}
				if name == "lower" { // what is large takes its time under the race detector
					compressions = append(compressions, []grpc.CallOption{grpc.UseCompressor(gzip.Name)})
				}
				for _, options := range compressions {
					for range 2 { // before it is known to be unary, and after
						require.Equal(t, []codes.Code{codes.OK, codes.OK}, sized(t, n, limit, options...))
						require.Equal(t, []codes.Code{codes.ResourceExhausted, codes.ResourceExhausted}, sized(t, n, limit+1, options...))
					}
				}
			}, func(cfg *Config) {
				if name != "default" {
					cfg.MaxMessage = limit
				}
			})
		})
	}
}

// The leader's limit holds where the follower's is higher: its refusal is passed on.
func TestMaxMessageOfTheLeader(t *testing.T) {
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxMessage = 1000 })
	leader.leads(7, &script{unary: echo, stream: echoes})
	follower := newNode(t, "follower")
	follower.front.router.follow(leader.as(7))
	for range 2 {
		require.Equal(t, []codes.Code{codes.OK, codes.OK}, sized(t, follower, 1000))
		require.Equal(t, []codes.Code{codes.ResourceExhausted, codes.ResourceExhausted}, sized(t, follower, 1001))
	}
}

// What is too large takes no memory at a node, however large it says it is, and however
// small it was when it came.
func TestOversizedMessagesTakeNoMemory(t *testing.T) {
	leader, follower := pair(t, &script{unary: echo, stream: echoes})
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
				_, code := post(t, client, n.address, bidiMethod, "gzip", body)
				require.Equal(t, "8", code, name) // RESOURCE_EXHAUSTED
			}
			runtime.ReadMemStats(&last)
			took := (last.TotalAlloc - first.TotalAlloc) / times
			require.Less(t, took, uint64(8*DefaultMaxMessage), "%s at the %s", name, n.cfg.Elector.NodeID)
		}
	}
}

// More metadata than the limit does not come in; what fits a follower and not the leader,
// for the hop's own, is refused, too.
func TestMaxMetadata(t *testing.T) {
	s := &script{unary: echo}
	for name, limit := range map[string]int{"default": DefaultMaxMetadata, "lower": 4 << 10, "higher": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, s, func(t *testing.T, n *node) {
				for range 2 {
					fits := metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", limit-2048))
					_, err := n.unary(fits, "")
					require.NoError(t, err)
					over := metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", limit))
					_, err = n.unary(over, "")
					require.Equal(t, codes.Internal, status.Code(err), "%v", err)
				}
			}, func(cfg *Config) {
				if name != "default" {
					cfg.MaxMetadata = limit
				}
			})
		})
	}
}

// Calls over the limit of a connection wait for one of it to end; other connections are
// not concerned. A follower's calls share a connection, and wait there as well.
func TestMaxStreams(t *testing.T) {
	few := func(cfg *Config) { cfg.MaxStreams = 2 }
	leader, follower := newNode(t, "leader", few), newNode(t, "follower")
	leader.leads(7, &script{unary: echo, stream: echoes})
	follower.front.router.follow(leader.as(7))
	for _, n := range []*node{leader, follower} {
		var taken []*flow
		for range 2 {
			f := n.open(etcdtest.Context(t), bidiMethod)
			f.send("hello")
			f.expect("hello")
			taken = append(taken, f)
		}
		_, err := n.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "a call too many was answered")
		third := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
		other := dialTo(t, leader.address)
		require.NoError(t, other.Invoke(etcdtest.Context(t), unaryMethod, &message{}, &message{}))
		require.NoError(t, other.Close())
		require.NoError(t, taken[0].CloseSend())
		require.NoError(t, taken[0].end())
		require.NoError(t, etcdtest.Take(t, third, "the third call"))
		require.NoError(t, taken[1].CloseSend())
		require.NoError(t, taken[1].end())
	}
}

// gRPC's own options for the same come later, and count.
func TestServerOptionsComeAfterTheLimits(t *testing.T) {
	n := newNode(t, "n", func(cfg *Config) {
		cfg.MaxMessage = 10
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.MaxRecvMsgSize(2000))
	})
	n.leads(7, &script{unary: echo, stream: echoes})
	require.Equal(t, []codes.Code{codes.OK, codes.OK}, sized(t, n, 2000))
	require.Equal(t, []codes.Code{codes.ResourceExhausted, codes.ResourceExhausted}, sized(t, n, 2001))
	require.True(t, bytes.Equal(wrapped("x"), []byte{0x0a, 1, 'x'}))
}

// An answer is its sender's business, unless a follower has a limit among its options: then
// the call is over, and nobody knows what was done; the connection and others go on.
func TestLargeAnswers(t *testing.T) {
	s := &script{unary: func(_ context.Context, in *message) (*message, error) {
		return &message{Value: make([]byte, len(in.GetValue())<<10)}, nil
	}}
	leader, follower := pair(t, s)
	large := strings.Repeat("x", 8<<10) // 8 MiB come back
	for _, n := range []*node{leader, follower} {
		for range 2 {
			out, err := n.unary(etcdtest.Context(t), large, grpc.MaxCallRecvMsgSize(math.MaxInt))
			require.NoError(t, err)
			require.True(t, len(out) == 8<<20)
		}
	}
	careful := newNode(t, "careful", func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<20)))
	})
	careful.front.router.follow(leader.as(7))
	for range 2 {
		_, err := careful.unary(etcdtest.Context(t), "fits")
		require.NoError(t, err)
		_, err = careful.unary(etcdtest.Context(t), large, grpc.MaxCallRecvMsgSize(math.MaxInt))
		require.False(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		require.ErrorContains(t, err, "larger than max")
	}
}

// What the leader's limit refuses is the call's own fault: it is not tried again.
func TestMaxMessageOfTheLeaderIsFinal(t *testing.T) {
	var refused atomic.Int64
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxMessage = 1000 })
	leader.leads(7, &script{unary: echo, stream: echoes})
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(trailers{&refused}))
	})
	follower.front.router.follow(leader.as(7))
	for range 2 {
		refused.Store(0)
		_, err := follower.unary(etcdtest.Context(t), strings.Repeat("x", 2000))
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.EqualValues(t, 1, refused.Load(), "it was sent again")
	}
}
