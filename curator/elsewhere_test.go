package curator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// largeWindows lets a caller send more to the node than is kept.
func largeWindows(cfg *Config) {
	cfg.ServerOptions = append(cfg.ServerOptions, grpc.StaticStreamWindowSize(4*streamWindow), grpc.StaticConnWindowSize(8*streamWindow))
}

// stalled makes calls to the node wait until a channel is closed.
func stalled(until <-chan struct{}) func(*Config) {
	return intercept(func(context.Context) error { <-until; return nil })
}

// once makes a call wait for another route after its first attempt, for as long as the test lasts.
func (n *node) once() { n.lookAgain = func(int) time.Duration { return time.Hour } }

// Row 62: a call that has reached a handler is sent nowhere else, however it ends, and however much
// of it the handler has read: it may have been carried out.
func TestRow62BegunCallsStay(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, refuse, late <-chan struct{}) error{
		"with a refusal of its own": func(_ context.Context, refuse, _ <-chan struct{}) error {
			<-refuse
			return status.Error(codes.Unavailable, "the service's own")
		},
		"with its tenure": func(ctx context.Context, _, _ <-chan struct{}) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"when it has been answered": func(_ context.Context, _, late <-chan struct{}) error {
			<-late
			return nil
		},
	} {
		for _, at := range []string{"follower", "follower that knows", "leader"} {
			for _, method := range []string{unaryMethod, serverMethod, bidiMethod} { // the handler of serverMethod reads nothing
				t.Run(fmt.Sprintf("%s ends %s, at the %s", method, name, at), func(t *testing.T) {
					t.Parallel()
					began, refuse, late := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
					begins := func(ctx context.Context) error {
						began <- struct{}{}
						return end(ctx, refuse, late)
					}
					last, next := newNode(t, "last", patient, grace(time.Millisecond)), newNode(t, "next")
					follower := newNode(t, "follower", patient)
					last.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
						return in, begins(ctx)
					}, stream: func(stream grpc.ServerStream) error {
						if called, _ := grpc.MethodFromServerStream(stream); called == bidiMethod {
							if _, err := received(stream); err != nil {
								return err
							}
						}
						return begins(stream.Context())
					}})
					next.leads(8, echoing)
					follower.follows(last, 7)
					n := follower
					switch at {
					case "follower that knows":
						follower.learns()
					case "leader":
						n = last
					}
					call := n.open(method)
					call.send("hello")
					require.NoError(t, call.CloseSend())
					etcdtest.Take(t, began, "the handler")

					follower.follows(next, 8)
					close(refuse)
					if name != "with a refusal of its own" {
						over := asking(func() error { last.loses(); return nil })
						last.routed(func(r *route) bool { return r.Tenure == nil })
						last.follows(next, 8)
						defer func() { require.NoError(t, etcdtest.Take(t, over, "the end of the tenure")) }()
					}
					defer close(late)
					err := call.end()
					require.Zero(t, next.calls.Load(), "it was carried out twice")
					require.EqualValues(t, 1, last.calls.Load(), "it was carried out twice")
					requireCode(t, codes.Unavailable, err)
				})
			}
		}
	}
}

// Row 62: a call that a leader refuses before it begins waits at the follower for the next leader,
// which may be the follower itself, and is sent there unchanged: unary calls, and streams of which
// some messages had been sent.
func TestRow62RefusedBeforeItBegan(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, here := range []bool{false, true} {
			t.Run(fmt.Sprintf("known %v, served here %v", known, here), func(t *testing.T) {
				var refused atomic.Int64
				last, next, follower := newNode(t, "last"), newNode(t, "next"), newNode(t, "follower", patient, refusals(&refused))
				last.leadsWhile(7, echoing, expired)
				follower.follows(last, 7)
				if known {
					follower.learns()
				}
				unary := follower.ask("hello")
				var streams []*flow
				for range 3 {
					stream := follower.open(bidiMethod)
					stream.send("0", "1", "2", "3", "4")
					streams = append(streams, stream)
				}
				etcdtest.Eventually(t, func() bool { return refused.Load() >= 8 || len(unary) == 1 }, "each is refused, and tried again")
				if here {
					next = follower
				}
				next.leads(8, echoing)
				follower.follows(next, 8) // has no effect if it leads itself
				require.NoError(t, etcdtest.Take(t, unary, "the answer"))
				for _, stream := range streams {
					stream.expect("0", "1", "2", "3", "4")
					stream.send("more")
					stream.expect("more")
					stream.closes()
				}
				require.Zero(t, last.calls.Load())
				require.EqualValues(t, 4, next.calls.Load(), "each once")
				follower.empty()
			})
		}
	}
}

// Row 62: the same for a stream that has sent as much as flow control allows.
func TestRow62AFullWindowIsSentAgain(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	last, next, follower := newNode(t, "last", stalled(over)), newNode(t, "next"), newNode(t, "follower", patient)
	last.leadsWhile(7, echoing, expired)
	follower.follows(last, 7)
	stream := follower.open(bidiMethod)
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
	close(over)
	next.leads(8, echoing)
	follower.follows(next, 8)
	for i := range messages {
		stream.expect(fmt.Sprintf("%d%20000d", i, 0))
	}
	require.NoError(t, stream.end())
	require.NoError(t, etcdtest.Take(t, sending, "the sender"))
}

// Row 62: a message that is still being sent when the leader refuses the call is sent to the next
// leader with all those before it.
func TestRow62RefusedWhileItSends(t *testing.T) {
	said := []string{strings.Repeat("1", replayed/2), strings.Repeat("2", replayed/2+1), strings.Repeat("3", replayed/2)}
	left, waits := make(chan struct{}), make(chan struct{})
	var messages atomic.Int64
	last, next := newNode(t, "last", largeWindows, stalled(left)), newNode(t, "next")
	follower := newNode(t, "follower", patient, sends(func() {
		if messages.Add(1) == int64(len(said)) {
			close(left)
			<-waits
		}
	}))
	last.leadsWhile(7, echoing, expired)
	follower.once() // the second attempt comes when the first one has continued
	follower.follows(last, 7)
	stream := follower.open(bidiMethod)
	stream.send(said...)
	follower.holds(1, "it waits")
	close(waits)
	time.Sleep(50 * time.Millisecond) // the first attempt continues
	next.leads(8, echoing)
	follower.follows(next, 8)
	require.NoError(t, stream.CloseSend())
	for i, message := range said {
		got, err := stream.receive()
		require.NoError(t, err)
		require.True(t, got == message, "message %d is lost", i)
	}
	require.NoError(t, stream.end())
}

// Row 62: a tenure that ends while a unary call arrives does not affect the next attempt: the old
// handler goroutine, which waits for the message, does not begin the call any more.
func TestRow62WaitForAMessageIsOver(t *testing.T) {
	kept := make(chan bool, 1)
	var n *node
	n = newNode(t, "n", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(_ any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			ended := newTenure(stream.Context(), 7, expired)
			ended.Cancel(errDeposed)
			v := &incoming{Curator: n.Curator, caller: newReplay(stream, n.backlog, nil, false)}
			defer v.caller.drop()
			if err := v.dispatch(ended, &method{unary: describe("test.Script").Methods[0].Handler}); !errors.Is(err, errNotBegun) {
				return err
			}
			said := v.caller.again()
			time.Sleep(time.Millisecond)
			v.caller.mu.Lock()
			defer v.caller.mu.Unlock()
			kept <- v.caller.reader == said
			return nil
		}))
	})
	for range 100 {
		call := n.open(unaryMethod)
		require.True(t, etcdtest.Take(t, kept, "the next attempt"), "the reading of the next attempt was ended by the last one")
		_ = call.end()
	}
}

// Row 62: a leader that stops announces it first, and new calls are not sent to it. A leader that
// serves again is called again.
func TestRow62AnnouncedStop(t *testing.T) {
	var came atomic.Int64
	leader, follower := newNode(t, "leader", counted(&came)), newNode(t, "follower", patient)
	tenure := leader.leads(7, echoing)
	follower.follows(leader, 7)
	follower.answers("")
	leader.router.Leave(tenure, errDeposed)
	etcdtest.Eventually(t, func() bool { return follower.router.Now().Leaving }, "the follower knows")
	waits := follower.ask("")
	follower.holds(1, "it waits")
	follower.follows(leader, 7) // which changes nothing
	require.EqualValues(t, 1, came.Load(), "it went to a leader that stops")
	require.NoError(t, leader.router.Lead(tenure))
	require.NoError(t, etcdtest.Take(t, waits, "the answer"))
	require.EqualValues(t, 2, came.Load())
}

// A refusal of the service, and a call that had begun, are sent nowhere else, even if the trailer
// looks like a curator's.
func TestRefusalOfTheServiceIsFinal(t *testing.T) {
	leader, follower := pair(t, &script{stream: func(stream grpc.ServerStream) error {
		stream.SetTrailer(map[string][]string{servedKey: {"7"}})
		return status.Error(codes.Unavailable, "the service's own")
	}})
	require.ErrorContains(t, follower.open(bidiMethod).end(), "the service's own")
	require.EqualValues(t, 1, leader.calls.Load(), "it was called twice")
}

// A stream of which more has been sent than is kept, because its leader has larger windows than
// other curators, is refused, and its caller may send it again.
func TestMoreHadLeftThanIsKept(t *testing.T) {
	enough := make(chan struct{})
	var sent atomic.Int64
	last := newNode(t, "last", largeWindows, stalled(enough))
	follower := newNode(t, "follower", waits(time.Hour), sends(func() { sent.Add(1) }))
	last.leadsWhile(7, echoing, expired)
	follower.follows(last, 7)
	stream := follower.open(bidiMethod)
	for range 4 {
		stream.send(strings.Repeat("x", replayed/2))
	}
	etcdtest.Eventually(t, func() bool { return sent.Load() >= 4 }, "the messages have left")
	close(enough)
	require.True(t, requireRetry(t, stream.end()).GetNothingApplied())
}

// What the caller sends while its call waits for the next leader arrives there after what it had
// sent before. A call that is tried many times leaks nothing at each attempt.
func TestMessagesWhileTheCallWaits(t *testing.T) {
	var refused atomic.Int64
	last, next, follower := newNode(t, "last"), newNode(t, "next"), newNode(t, "follower", patient, refusals(&refused))
	last.leadsWhile(7, echoing, expired)
	next.leads(8, echoing)
	large := strings.Repeat("x", 2*replayed)
	follower.once()
	for range 5 {
		follower.follows(last, 7)
		refused.Store(0)
		stream := follower.open(bidiMethod)
		stream.send("first")
		etcdtest.Eventually(t, func() bool { return follower.backlog.load().calls == 1 && refused.Load() == 1 }, "it waits")
		stream.send(large)
		time.Sleep(10 * time.Millisecond) // so that it has arrived
		follower.follows(next, 8)
		stream.send("third")
		stream.expect("first", large, "third")
		stream.closes()
	}
	follower.lookAgain = func(int) time.Duration { return time.Millisecond }
	follower.follows(last, 7)
	refused.Store(0)
	follower.open(bidiMethod).send("first")
	etcdtest.Eventually(t, func() bool { return refused.Load() > 10 }, "it is tried")
	had := runtime.NumGoroutine()
	etcdtest.Eventually(t, func() bool { return refused.Load() > 210 }, "it is tried again")
	require.Less(t, runtime.NumGoroutine(), had+50)
}

// slow is a caller that sends messages of the sizes that it receives.
type slow struct {
	grpc.ServerStream
	pool  *buffers
	sizes chan int
}

func (s slow) RecvMsg(m any) error {
	data := mem.BufferSlice{mem.NewBuffer(s.pool.Get(<-s.sizes), s.pool)}
	defer data.Free()
	return rawframe.Codec{}.Unmarshal(data, m)
}

// A message that arrives while a call waits is kept if there is room. If there is none, it is not
// held, and the call ends.
func TestMessagesThatComeWhileACallWaitsAreBounded(t *testing.T) {
	const room = 10 << 10 // larger than the messages for which gRPC does not use its pools
	for _, fits := range []bool{true, false} {
		caller := slow{pool: newBuffers(), sizes: make(chan int)}
		r := newReplay(caller, newBacklog(1, 2*room), "the test", false)
		first := r.again()
		ended := asking(func() error {
			for {
				var f rawframe.Frame
				err := first.RecvMsg(&f)
				f.Free()
				if err != nil {
					return err
				}
			}
		})
		caller.sizes <- room / 2
		etcdtest.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.receiving && len(r.kept) == 1 }, "it receives the next one")
		require.True(t, first.takeBack())
		last := map[bool]int{true: room / 2, false: 2 * room}[fits]
		caller.sizes <- last
		require.ErrorIs(t, etcdtest.Take(t, ended, "the end of the first reading"), errSuperseded)
		enough, lost := r.room()
		require.Equal(t, []bool{fits, !fits}, []bool{enough, lost})
		require.LessOrEqual(t, r.backlog.load().bytes, room)
		var f rawframe.Frame
		next := r.again()
		require.NoError(t, next.RecvMsg(&f))
		require.Equal(t, room/2, f.Data.Len())
		if fits {
			require.NoError(t, next.RecvMsg(&f))
			require.Equal(t, last, f.Data.Len())
			require.EqualValues(t, 2, caller.pool.out.Load())
		} else {
			require.EqualValues(t, 1, caller.pool.out.Load(), "it is held")
			require.ErrorIs(t, next.RecvMsg(&f), errNoRoom)
		}
		f.Free()
		r.drop()
		require.Zero(t, caller.pool.out.Load())
		require.Zero(t, r.backlog.load())
	}
}
