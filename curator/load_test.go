package curator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A thousand forwarded calls at once: each is in its handler before any is answered.
func TestThousandConcurrentForwardedCalls(t *testing.T) {
	t.Parallel()
	const calls = 1000
	var all sync.WaitGroup
	all.Add(calls)
	together := make(chan struct{})
	go func() { all.Wait(); close(together) }()
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		all.Done()
		select {
		case <-together:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	leader, follower := pair(t, s)
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() {
			in := fmt.Sprint(i)
			if out, err := follower.unary(etcdtest.ContextFor(t, 4*etcdtest.Patience), in); err != nil || out != in {
				t.Errorf("call %d: %q %v", i, out, err)
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, calls, leader.calls.Load())
}

// pool counts the buffers that gRPC has out, so that one that is not given back is
// found. (One that is given back twice panics.)
type pool struct {
	mem.BufferPool
	out atomic.Int64
}

func (p *pool) Get(n int) *[]byte {
	p.out.Add(1)
	return p.BufferPool.Get(n)
}

func (p *pool) Put(b *[]byte) {
	p.out.Add(-1)
	p.BufferPool.Put(b)
}

func (p *pool) join(cfg *Config) {
	cfg.ServerOptions = append(cfg.ServerOptions, experimental.BufferPool(p), grpc.MaxRecvMsgSize(1<<30))
	cfg.PeerOptions = append(cfg.PeerOptions, experimental.WithBufferPool(p))
}

// Row 44: 64 MiB in either direction at once, in messages of all sizes; and messages
// larger than any default. All buffers go back to where they came from.
func TestRequirement44LargeStreams(t *testing.T) {
	t.Parallel()
	const total = 64 << 20
	p := &pool{BufferPool: mem.DefaultBufferPool()}
	s := &script{stream: echoes, unary: echo}
	_, follower := pair(t, s, p.join)
	random := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 1<<21)
	for i := range block {
		block[i] = byte(random.Uint32())
	}
	long := 4 * etcdtest.Patience // under the race detector, too
	stream := follower.open(etcdtest.ContextFor(t, long), bidiMethod, grpc.MaxCallRecvMsgSize(1<<30))
	sent, got := sha256.New(), sha256.New()
	sending := asking(func() error {
		for left := total; left > 0; {
			n := min(left, random.IntN(len(block)))
			left -= n
			sent.Write(block[:n])
			if err := stream.SendMsg(wrapperspb.Bytes(block[:n])); err != nil {
				return err
			}
		}
		return stream.CloseSend()
	})
	received := 0
	for {
		m := &message{}
		if err := stream.RecvMsg(m); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		received += len(m.GetValue())
		got.Write(m.GetValue())
	}
	require.NoError(t, etcdtest.Take(t, sending, "the sender"))
	require.Equal(t, total, received)
	require.Equal(t, sent.Sum(nil), got.Sum(nil))

	big := string(make([]byte, 20<<20))
	for range 2 { // as one of two pumps, and as one message each way
		out, err := follower.unary(etcdtest.ContextFor(t, long), big, grpc.MaxCallRecvMsgSize(1<<30))
		require.NoError(t, err)
		require.Len(t, out, len(big))
	}
	etcdtest.Eventually(t, func() bool { return p.out.Load() == 0 }, "all buffers are given back")
}

// Row 44: a reader that does not read holds up the sender, on both ways through a
// follower: what is under way is bounded by the windows.
func TestRequirement44FlowControl(t *testing.T) {
	t.Parallel()
	const message = 1 << 16
	block := string(make([]byte, message))
	var sent atomic.Int64
	read := make(chan struct{})
	s := &script{stream: func(stream grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(stream); method == serverMethod {
			for {
				if err := replies(stream, block); err != nil {
					return err
				}
				sent.Add(1)
			}
		}
		<-read
		for {
			if _, err := received(stream); errors.Is(err, io.EOF) {
				return replies(stream, "all")
			} else if err != nil {
				return err
			}
		}
	}}
	_, follower := pair(t, s)
	// Window and a little more at each of the connections on the way.
	const bound = 3 * (streamWindow/message + 4)

	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	stream := follower.open(ctx, serverMethod)
	stream.send("")
	settled(t, &sent)
	require.LessOrEqual(t, sent.Load(), int64(bound), "nobody reads, and yet it sends")
	cancel()
	require.Error(t, stream.end())

	sent.Store(0)
	stream = follower.open(etcdtest.Context(t), clientMethod)
	sending := asking(func() error {
		for range 4 * bound {
			if err := stream.SendMsg(wrapperspb.Bytes([]byte(block))); err != nil {
				return err
			}
			sent.Add(1)
		}
		return stream.CloseSend()
	})
	settled(t, &sent)
	require.LessOrEqual(t, sent.Load(), int64(bound), "nobody reads, and yet it sends")
	close(read)
	require.NoError(t, etcdtest.Take(t, sending, "the sender"))
	stream.expect("all")
}

// settled waits until a counter has moved and then stands still for a while.
func settled(t testing.TB, n *atomic.Int64) {
	t.Helper()
	last, since := int64(0), time.Now()
	etcdtest.Eventually(t, func() bool {
		if now := n.Load(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > 200*time.Millisecond
	}, "it stands still")
}

// A message over the limit of the node that the caller talks to ends the call, here and
// at the leader.
func TestMessageOverTheLimit(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	s := &script{unary: echo, stream: func(stream grpc.ServerStream) error {
		began <- struct{}{}
		_, err := received(stream)
		ended <- err
		return err
	}}
	leader := newNode(t, "leader")
	leader.leads(7, s)
	follower := newNode(t, "follower", func(cfg *Config) { cfg.ServerOptions = append(cfg.ServerOptions, grpc.MaxRecvMsgSize(1<<10)) })
	follower.front.router.follow(leader.as(7))
	big := string(make([]byte, 2<<10))
	for range 2 { // before it is known to be unary, and after
		_, err := follower.unary(etcdtest.Context(t), big)
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
		_, err = follower.unary(etcdtest.Context(t), "small")
		require.NoError(t, err)
	}
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	etcdtest.Take(t, began, "the handler")
	stream.send(big)
	require.Equal(t, codes.ResourceExhausted, status.Code(stream.end()))
	require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, ended, "the handler's end")))
}
