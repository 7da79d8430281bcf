package fence_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// tenure is one whose end the test decides. Its zero end is that of a leader that was
// stopped after it had looked: it never learns.
type tenure struct {
	election string
	token    eldest.Token

	mu  sync.Mutex
	end error
}

func (t *tenure) Election() string    { return t.election }
func (t *tenure) Token() eldest.Token { return t.token }

func (t *tenure) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

func (t *tenure) ends(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = err
}

// in is a tenure in the election of most tests.
func in(token eldest.Token) *tenure { return &tenure{election: "billing", token: token} }

// newFence makes a fence for that election, unless the change says otherwise.
func newFence(t *testing.T, change ...func(*fence.Config)) *fence.Fence {
	t.Helper()
	cfg := fence.Config{Elections: []string{"billing"}, Store: &fence.Memory{}}
	for _, f := range change {
		f(&cfg)
	}
	f, err := fence.New(cfg)
	require.NoError(t, err)
	return f
}

// broken is a store that fails as it is told.
type broken struct {
	fence.Memory
	mu     sync.Mutex
	err    error
	forget bool
}

func (b *broken) Advance(ctx context.Context, election string, token eldest.Token) (eldest.Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return 0, b.err
	case b.forget:
		return token - 1, nil
	}
	return b.Memory.Advance(ctx, election, token)
}

func (b *broken) fails(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

var errDisk = errors.New("disk on fire at dsn=secret")

// sayings is what a fence says.
type sayings struct{ etcdtest.Paper }

func (l *sayings) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// ledger is a service that writes down what reaches its handlers.
type ledger struct {
	mu      sync.Mutex
	written []string
	// ends, if there is one, receives how the handler of each stream has ended.
	ends chan error
}

func (l *ledger) write(ctx context.Context, what string) {
	election, token, ok := fence.TokenFrom(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		if value, err := fence.Format(election, token); err == nil {
			what += " by " + value
		}
	}
	l.written = append(l.written, what)
}

func (l *ledger) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.written...)
}

// put is the unary method, feed a stream of messages, each answered; collect a stream of
// messages with one answer.
const put, feed, collect = "/test.Ledger/Put", "/test.Ledger/Feed", "/test.Ledger/Collect"

var streams = map[string]*grpc.StreamDesc{
	feed:    {StreamName: "Feed", ClientStreams: true, ServerStreams: true},
	collect: {StreamName: "Collect", ClientStreams: true},
}

// serve serves the ledger behind a fence; it returns a connection to it.
func (l *ledger) serve(t *testing.T, f *fence.Fence, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(f.UnaryServer()), grpc.StreamInterceptor(f.StreamServer()))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Ledger", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Put", Handler: func(_ any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
			in := &wrapperspb.StringValue{}
			if err := decode(in); err != nil {
				return nil, err
			}
			return through(ctx, in, &grpc.UnaryServerInfo{FullMethod: put}, func(ctx context.Context, _ any) (any, error) {
				l.write(ctx, in.GetValue())
				return in, nil
			})
		}}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Feed", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				return l.each(s, func(in *wrapperspb.StringValue) error { return s.SendMsg(in) })
			}},
			{StreamName: "Collect", ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				if err := l.each(s, func(*wrapperspb.StringValue) error { return nil }); err != nil {
					return err
				}
				return s.SendMsg(wrapperspb.String("all"))
			}},
		},
	}, l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-served)
	})
	return conn
}

// each writes down all messages of a stream until the caller ends it.
func (l *ledger) each(s grpc.ServerStream, then func(*wrapperspb.StringValue) error) (end error) {
	if l.ends != nil {
		defer func() { l.ends <- end }()
	}
	for {
		in := &wrapperspb.StringValue{}
		switch err := s.RecvMsg(in); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		l.write(s.Context(), in.GetValue())
		if err := then(in); err != nil {
			return err
		}
	}
}
