package curator

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A panic in a handler reaches the interceptors in front, as in gRPC, although it was on
// another goroutine; where it was is in it.
func TestPanicReachesTheInterceptors(t *testing.T) {
	var recovered any
	recovering := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		defer func() {
			if recovered = recover(); recovered != nil {
				err = status.Errorf(codes.DataLoss, "recovered from %v", recovered)
			}
		}()
		return handler(srv, stream)
	}
	s := &script{unary: func(context.Context, *message) (*message, error) { panic("oh") }, stream: func(grpc.ServerStream) error { panic(errDeposed) }}
	n := newNode(t, "n", func(cfg *Config) { cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(recovering)) })
	tenure := n.leads(7, s)
	_, err := n.unary(etcdtest.Context(t), "")
	require.Equal(t, codes.DataLoss, status.Code(err))
	require.ErrorContains(t, err, "recovered from oh")
	require.ErrorContains(t, err, "TestPanicReachesTheInterceptors.func", "where was it?")
	require.Equal(t, codes.DataLoss, status.Code(n.open(etcdtest.Context(t), bidiMethod).end()))
	require.ErrorIs(t, recovered.(error), errDeposed)
	n.loses(tenure, errDeposed) // and nothing of them is left in it
}

// Where nobody recovers a panic ends the process, whether somebody waits for the handler
// or not.
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
	n := newNode(t, "n", func(cfg *Config) { cfg.Grace = time.Millisecond })
	tenure := n.leads(7, &script{unary: func(context.Context, *message) (*message, error) {
		began <- struct{}{}
		<-release
		panic("oh")
	}})
	done := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Take(t, began, "the handler")
	if how == "abandoned" {
		go n.loses(tenure, errDeposed)
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
	}
	close(release)
	etcdtest.Take(t, make(chan struct{}), "the end")
}

// A handler that ends its goroutine has answered nothing.
func TestGoexitInAHandler(t *testing.T) {
	n := newNode(t, "n")
	n.leads(7, &script{unary: func(context.Context, *message) (*message, error) { runtime.Goexit(); return nil, nil }})
	_, err := n.unary(etcdtest.Context(t), "")
	require.Equal(t, codes.Internal, status.Code(err))
}

// The interceptors of the server are called around every call at each node that it comes
// to, those of the curator around the handlers of the leader, with messages.
func TestInterceptors(t *testing.T) {
	var front, unary, stream atomic.Int64
	s := &script{unary: echo, stream: echoes}
	everywhere(t, s, func(t *testing.T, n *node) {
		front.Store(0)
		unary.Store(0)
		stream.Store(0)
		nodes := int64(1)
		if n.cfg.Elector.NodeID == "follower" {
			nodes = 2
		}
		_, err := n.unary(etcdtest.Context(t), "hello")
		require.NoError(t, err)
		require.Equal(t, []int64{nodes, 1, 0}, []int64{front.Load(), unary.Load(), stream.Load()})
		f := n.open(etcdtest.Context(t), bidiMethod)
		f.send("hello")
		f.expect("hello")
		require.NoError(t, f.CloseSend())
		require.NoError(t, f.end())
		require.Equal(t, []int64{2 * nodes, 1, 1}, []int64{front.Load(), unary.Load(), stream.Load()})
	}, func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/test.Script/") {
				front.Add(1)
			}
			return handler(srv, stream)
		}))
		cfg.Unary = func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if m, ok := in.(*message); ok && string(m.GetValue()) == "hello" && info.FullMethod == unaryMethod {
				unary.Add(1)
			}
			return handler(ctx, in)
		}
		cfg.Stream = func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if info.FullMethod == bidiMethod && info.IsClientStream && info.IsServerStream {
				stream.Add(1)
			}
			return handler(srv, s)
		}
	})
}

// Services of Config.Local are answered by each node, whoever leads, interceptors and
// all; their unknown methods are not the leader's.
func TestLocalServices(t *testing.T) {
	var unary atomic.Int64
	own := &script{unary: func(context.Context, *message) (*message, error) { return &message{Value: []byte("own")}, nil }, stream: echoes}
	everywhere(t, &script{unary: echo}, func(t *testing.T, n *node) {
		unary.Store(0)
		var out message
		require.NoError(t, n.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &out))
		require.Equal(t, "own", string(out.GetValue()))
		require.EqualValues(t, 1, unary.Load())
		for _, method := range []string{"/test.Local/Bidi", "/test.Local/Server"} {
			stream := n.open(etcdtest.Context(t), method)
			stream.send("hello")
			require.NoError(t, stream.CloseSend())
			stream.expect("hello")
			require.NoError(t, stream.end())
		}
		err := n.conn.Invoke(etcdtest.Context(t), "/test.Local/Missing", &message{}, &out)
		require.Equal(t, codes.Unimplemented, status.Code(err))
		n.front.local.RegisterService(describe("test.Late"), own) // gRPC would end the process
		require.NotContains(t, n.front.local.GetServiceInfo(), "test.Late")
		require.Contains(t, n.front.local.GetServiceInfo(), "test.Local")
		require.Contains(t, n.front.local.GetServiceInfo(), "eldest.curator.v1.Curator")
	}, func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), own) }
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.UnaryInterceptor(func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if _, ok := in.(*message); ok && info.FullMethod == "/test.Local/Unary" {
				unary.Add(1)
			}
			return handler(ctx, in)
		}))
	})
}

// choosy lets no second message through.
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

// What an interceptor says of the messages is what the caller is told, and the leader's
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
	follower.front.router.follow(leader.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	stream.send("first")
	stream.expect("first")
	stream.send("second")
	require.Equal(t, codes.PermissionDenied, status.Code(stream.end()))
	require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, ended, "the handler's end")))
}

// The end of a front waits for everything that it has started.
func TestCloseWaits(t *testing.T) {
	n := newNode(t, "n")
	release, closed := make(chan struct{}), make(chan struct{})
	n.front.crew.Go(func() { <-release })
	go func() {
		defer close(closed)
		_ = n.front.close(0, errStopped)
	}()
	select {
	case <-closed:
		require.Fail(t, "somebody is left behind")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	etcdtest.Take(t, closed, "the end")
}

// A local handler that ignores the end of its call does not keep Run from returning.
func TestStubbornLocalHandler(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := New(Config{
		Elector: elector.Config{Election: "test", NodeID: "n", Source: func(ctx context.Context) (elector.Clients, error) {
			<-ctx.Done()
			return elector.Clients{}, ctx.Err()
		}},
		Listener: listener, Grace: time.Millisecond,
		Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
		Local: func(r grpc.ServiceRegistrar) {
			r.RegisterService(describe("test.Local"), &script{stream: func(grpc.ServerStream) error {
				began <- struct{}{}
				<-release
				return nil
			}})
		},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := asking(func() error { return c.Run(ctx) })
	conn := dialTo(t, listener.Addr().String())
	_, err = conn.NewStream(etcdtest.Context(t), anyStream, "/test.Local/Bidi")
	require.NoError(t, err)
	etcdtest.Take(t, began, "the handler")
	stop()
	err = etcdtest.Take(t, done, "the end of Run")
	require.ErrorIs(t, err, eldest.ErrStuck)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, conn.Close())
}
