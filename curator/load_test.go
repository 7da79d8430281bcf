package curator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// A thousand forwarded calls at once: each is in its handler before any is answered.
func TestThousandConcurrentForwardedCalls(t *testing.T) {
	t.Parallel()
	const calls = 1000
	var all sync.WaitGroup
	all.Add(calls)
	together := make(chan struct{})
	go func() { all.Wait(); close(together) }()
	leader, follower := pair(t, &script{unary: func(ctx context.Context, in *message) (*message, error) {
		all.Done()
		select {
		case <-together:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
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

// buffers counts the buffers that gRPC has taken, in order to find one that is not freed. (One that
// is freed twice panics.)
type buffers struct {
	mem.BufferPool
	out atomic.Int64
}

func newBuffers() *buffers { return &buffers{BufferPool: mem.DefaultBufferPool()} }

func (p *buffers) Get(n int) *[]byte {
	p.out.Add(1)
	return p.BufferPool.Get(n)
}

func (p *buffers) Put(b *[]byte) {
	p.out.Add(-1)
	p.BufferPool.Put(b)
}

func (p *buffers) join(cfg *Config) {
	cfg.ServerOptions = append(cfg.ServerOptions, experimental.BufferPool(p), grpc.MaxRecvMsgSize(1<<30))
	cfg.PeerOptions = append(cfg.PeerOptions, experimental.WithBufferPool(p))
}

// Row 44: 64 MiB in both directions at the same time, in messages of all sizes; and messages larger
// than any default. All buffers are returned to their pool.
func TestRequirement44LargeStreams(t *testing.T) {
	t.Parallel()
	const total = 64 << 20
	p := newBuffers()
	_, follower := pair(t, echoing, p.join)
	random := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 1<<21)
	for i := range block {
		block[i] = byte(random.Uint32())
	}
	long := 4 * etcdtest.Patience // long enough for the race detector
	stream := follower.openWith(etcdtest.ContextFor(t, long), bidiMethod, grpc.MaxCallRecvMsgSize(1<<30))
	sizes := make(chan int, 1<<16)
	sending := asking(func() error {
		defer close(sizes)
		for left := total; left > 0; {
			n := min(left, random.IntN(len(block)))
			left -= n
			sizes <- n
			if err := stream.SendMsg(wrapperspb.Bytes(block[:n])); err != nil {
				return err
			}
		}
		return stream.CloseSend()
	})
	for n := range sizes {
		m := &message{}
		require.NoError(t, stream.RecvMsg(m))
		require.True(t, bytes.Equal(block[:n], m.GetValue()))
	}
	require.NoError(t, stream.end())
	require.NoError(t, etcdtest.Take(t, sending, "the sender"))

	big := string(make([]byte, 20<<20))
	for range 2 { // before the method is known to be unary, and after
		out, err := follower.unary(etcdtest.ContextFor(t, long), big, grpc.MaxCallRecvMsgSize(1<<30))
		require.NoError(t, err)
		require.Len(t, out, len(big))
	}
	etcdtest.Eventually(t, func() bool { return p.out.Load() == 0 }, "all buffers are given back")
}

// Row 44: a receiver that does not read blocks the sender, in both directions through a follower:
// what is under way is bounded by the windows.
func TestRequirement44FlowControl(t *testing.T) {
	t.Parallel()
	const message = 1 << 16
	block := string(make([]byte, message))
	var sent atomic.Int64
	all := func(send func() error) error {
		for {
			if err := send(); err != nil {
				return err
			}
			sent.Add(1)
		}
	}
	_, follower := pair(t, &script{stream: func(stream grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(stream); method == serverMethod {
			return all(func() error { return replies(stream, block) })
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}})
	for _, method := range []string{serverMethod, clientMethod} {
		sent.Store(0)
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		stream := follower.openWith(ctx, method)
		sending := asking(func() error {
			if method == clientMethod {
				return all(func() error { return stream.SendMsg(wrapperspb.Bytes([]byte(block))) })
			}
			return stream.SendMsg(wrapperspb.Bytes(nil))
		})
		settled(t, &sent)
		// The window and a little more at each of the connections in between.
		require.LessOrEqual(t, sent.Load(), int64(3*(streamWindow/message+4)), "nobody reads, and yet it sends")
		cancel()
		require.Error(t, stream.end())
		_ = etcdtest.Take(t, sending, "the sender")
	}
}

// settled waits until a counter has moved and then does not move for a while.
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

// stubStream is a stream that supplies messages, and fails at one of its operations. It treats
// messages and buffers as gRPC does.
type stubStream struct {
	grpc.ServerStream
	pool     *buffers
	messages int  // to receive
	fails    int  // at the n-th operation, from 1; 0: never
	early    bool // before the codec is called
	sent     int
}

func (p *stubStream) failsNow() bool {
	p.fails--
	return p.fails == 0
}

func (p *stubStream) RecvMsg(m any) error {
	if p.failsNow() {
		return errDeposed
	}
	if p.messages == 0 {
		return io.EOF
	}
	p.messages--
	data := mem.BufferSlice{mem.NewBuffer(p.pool.Get(4096), p.pool)}
	defer data.Free()
	return rawframe.Codec{}.Unmarshal(data, m)
}

func (p *stubStream) SendMsg(m any) error {
	failed := p.failsNow()
	if failed && p.early {
		return errDeposed
	}
	data, err := rawframe.Codec{}.Marshal(m)
	if err != nil {
		return err
	}
	defer data.Free()
	if failed {
		return errDeposed
	}
	p.sent++
	return nil
}

func (p *stubStream) Context() context.Context     { return context.Background() }
func (p *stubStream) SendHeader(metadata.MD) error { return nil }
func (p *stubStream) SetTrailer(metadata.MD)       {}
func (p *stubStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (p *stubStream) Trailer() metadata.MD         { return hop{token: 7}.served() }
func (p *stubStream) CloseSend() error             { return nil }

// The buffers of each message are freed exactly once (twice would panic), wherever a direction
// fails, before or after gRPC has accepted the message; also if a handler cannot decode it, or if
// it comes too late.
func TestFramesAreGivenBack(t *testing.T) {
	const messages = 5
	for at := range 2*messages + 3 {
		for _, early := range []bool{false, true} {
			for _, side := range []string{"caller", "leader"} {
				for _, move := range []string{"requests", "answers", "handler"} {
					pool := newBuffers()
					caller := &stubStream{pool: pool, messages: messages, early: early}
					leader := &stubStream{pool: pool, messages: messages, early: early}
					map[string]*stubStream{"caller": caller, "leader": leader}[side].fails = at
					said := newReplay(caller, newBacklog(1, 1<<20), nil, false)
					r := relay{incoming: &incoming{Curator: &Curator{}, caller: said}, leader: &peer{}, conn: &share{link: &link{}}}
					switch move {
					case "requests":
						r.requests(said.again(), leader, func(error) {})
						r.requests(said.again(), leader, func(error) {}) // once more, for the next leader
						if at == 0 {
							require.Equal(t, 2*messages, leader.sent)
						}
					case "answers":
						_ = r.answers(said.again(), leader)
					default:
						stream := describe("test.Script").Streams[at%3]
						c := newCall(context.Background(), caller, &method{stream: &stream})
						_ = c.RecvMsg(&message{}) // 4096 zeros are not a valid message
						if early {
							_, _, _ = c.end(errDeposed)
						}
						_ = c.RecvMsg(&message{})
						_ = c.SendMsg(wrapperspb.Bytes(make([]byte, 4096)))
					}
					said.drop()
					require.Zero(t, pool.out.Load(), "%s, failed at %d of the %s, early: %v", move, at, side, early)
				}
			}
		}
	}
}

// costBar is the maximum ratio of the medians of a forwarded unary call and of one at the leader.
// The two are measured alternately.
const costBar = 2.5

// TestForwardedUnaryCost requires costBar. The calls alternate, so that other load of the machine
// affects both alike. Other load costs programs that switch goroutines more often more, so on a
// busy machine it is tried again for a minute.
func TestForwardedUnaryCost(t *testing.T) {
	leader, follower := pair(t, echoing)
	var took [2][]time.Duration // at the leader, and at the follower
	calls := func(times int) {
		took = [2][]time.Duration{}
		in := wrapperspb.Bytes(make([]byte, 128))
		for range times {
			for i, n := range []*node{leader, follower} {
				begun := time.Now()
				require.NoError(t, n.conn.Invoke(context.Background(), unaryMethod, in, &message{}))
				took[i] = append(took[i], time.Since(begun))
			}
		}
	}
	median := func(of []time.Duration) time.Duration {
		slices.Sort(of)
		return of[len(of)/2]
	}
	calls(500) // makes the connections and the buffers
	var ratio float64
	for try, begun := 0, time.Now(); try < 5 || time.Since(begun) < time.Minute; try++ {
		calls(2000)
		direct, forwarded := median(took[0]), median(took[1])
		ratio = float64(forwarded) / float64(direct)
		t.Logf("p50 direct %v, forwarded %v, ratio %.2f", direct, forwarded, ratio)
		if ratio <= costBar {
			return
		}
	}
	require.LessOrEqual(t, ratio, costBar)
}
