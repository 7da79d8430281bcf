package curator

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// recovering makes a node recover from panics in an interceptor, and report them.
func recovering(to chan<- any) func(*Config) {
	return func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer func() {
				if p := recover(); p != nil {
					to <- p
					err = status.Errorf(codes.DataLoss, "recovered from %v", p)
				}
			}()
			return handler(srv, stream)
		}))
	}
}

// A panic in a handler reaches the interceptors in front, as in gRPC, although it happened on
// another goroutine; it includes its stack. A handler that ends its goroutine has given no answer.
func TestPanicReachesTheInterceptors(t *testing.T) {
	recovered := make(chan any, 2)
	n := newNode(t, "n", recovering(recovered))
	n.leads(7, &script{unary: func(_ context.Context, in *message) (*message, error) {
		if len(in.GetValue()) > 0 {
			runtime.Goexit()
		}
		panic("oh")
	}, stream: func(grpc.ServerStream) error { panic(errDeposed) }})
	requireCode(t, codes.DataLoss, n.call(""), "recovered from oh", "TestPanicReachesTheInterceptors.func")
	<-recovered
	requireCode(t, codes.DataLoss, n.open(bidiMethod).end())
	require.ErrorIs(t, (<-recovered).(error), errDeposed)
	requireCode(t, codes.Internal, n.call("exit"))
	n.loses() // no handler is left in the tenure
}

// If no interceptor recovers, a panic ends the process, whether the handler is awaited or not.
func TestPanicEndsTheProcess(t *testing.T) {
	if how := os.Getenv("ELDEST_TEST_PANIC"); how != "" {
		panics(t, how)
		t.Fatal("still here")
	}
	for _, how := range []string{"awaited", "abandoned"} {
		run := exec.CommandContext(etcdtest.Context(t), os.Args[0], "-test.run=^TestPanicEndsTheProcess$")
		run.Env = append(os.Environ(), "ELDEST_TEST_PANIC="+how)
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		require.Contains(t, string(out), "oh", how)
		require.Contains(t, string(out), "curator.panics.func", "where was it?")
		require.NotContains(t, string(out), "still here", how)
	}
}

func panics(t *testing.T, how string) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	n := newNode(t, "n", grace(time.Millisecond))
	n.leads(7, &script{unary: func(context.Context, *message) (*message, error) {
		began <- struct{}{}
		<-release
		panic("oh")
	}})
	done := n.ask("")
	etcdtest.Take(t, began, "the handler")
	if how == "abandoned" {
		go n.loses()
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
	}
	close(release)
	etcdtest.Take(t, make(chan struct{}), "the end")
}

// The interceptors of the server are called around every call at each node that it comes to, those
// of the curator around the handlers of the leader, with messages. Every node answers services of
// Config.Local, with interceptors; their unknown methods are not forwarded to the leader.
func TestInterceptorsAndLocalServices(t *testing.T) {
	var front, unary, stream, local atomic.Int64
	own := &script{unary: func(context.Context, *message) (*message, error) { return &message{Value: []byte("own")}, nil }, stream: echoes}
	everywhere(t, echoing, func(t *testing.T, n, leader *node) {
		front.Store(0)
		unary.Store(0)
		stream.Store(0)
		local.Store(0)
		nodes := map[bool]int64{true: 1, false: 2}[n == leader]
		n.answers("hello")
		require.Equal(t, []int64{nodes, 1, 0}, []int64{front.Load(), unary.Load(), stream.Load()})
		f := n.open(bidiMethod)
		f.send("hello")
		f.expect("hello")
		f.closes()
		require.Equal(t, []int64{2 * nodes, 1, 1}, []int64{front.Load(), unary.Load(), stream.Load()})

		var out message
		require.NoError(t, n.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &out))
		require.Equal(t, "own", string(out.GetValue()))
		require.EqualValues(t, 1, local.Load())
		for _, method := range []string{"/test.Local/Bidi", "/test.Local/Server"} {
			f := n.open(method)
			f.send("hello")
			require.NoError(t, f.CloseSend())
			f.expect("hello")
			require.NoError(t, f.end())
		}
		requireCode(t, codes.Unimplemented, n.conn.Invoke(etcdtest.Context(t), "/test.Local/Missing", &message{}, &out))
		n.local.RegisterService(describe("test.Late"), own) // gRPC would end the process
		require.NotContains(t, n.local.GetServiceInfo(), "test.Late")
		require.Contains(t, n.local.GetServiceInfo(), "test.Local")
		require.Contains(t, n.local.GetServiceInfo(), "eldest.curator.v1.Curator")
	}, counted(&front), func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), own) }
		around := func(n *atomic.Int64, method string) grpc.UnaryServerInterceptor {
			return func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				if _, ok := in.(*message); ok && info.FullMethod == method {
					n.Add(1)
				}
				return handler(ctx, in)
			}
		}
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.UnaryInterceptor(around(&local, "/test.Local/Unary")))
		cfg.Unary = around(&unary, unaryMethod)
		cfg.Stream = func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if info.FullMethod == bidiMethod && info.IsClientStream && info.IsServerStream {
				stream.Add(1)
			}
			return handler(srv, s)
		}
	})
}

// choosy refuses the second message.
type choosy struct {
	grpc.ServerStream
	messages int
}

func (c *choosy) RecvMsg(m any) error {
	err := c.ServerStream.RecvMsg(m)
	if c.messages++; err == nil && c.messages > 1 {
		return status.Error(codes.PermissionDenied, "one is enough")
	}
	return err
}

// If an interceptor returns an error for a message, that is the caller's answer, and the leader's
// handler ends.
func TestInterceptorOfMessages(t *testing.T) {
	ended := make(chan error, 1)
	leader := newNode(t, "leader")
	leader.leads(7, &script{stream: func(stream grpc.ServerStream) error {
		err := echoes(stream)
		ended <- err
		return err
	}})
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, &choosy{ServerStream: stream})
		}))
	})
	follower.follows(leader, 7)
	stream := follower.open(bidiMethod)
	stream.send("first")
	stream.expect("first")
	stream.send("second")
	requireCode(t, codes.PermissionDenied, stream.end())
	requireCode(t, codes.Canceled, etcdtest.Take(t, ended, "the handler's end"))
}

// The end of a node waits for everything that it has started.
func TestCloseWaits(t *testing.T) {
	n := newNode(t, "n")
	release := make(chan struct{})
	n.goroutines.Go(func() { <-release })
	closed := asking(func() error { return n.close(0, errStopped) })
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, closed, "a goroutine is left behind")
	close(release)
	require.NoError(t, etcdtest.Take(t, closed, "the end"))
}
