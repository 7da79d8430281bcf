package fence_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// tenure is a tenure whose end the test decides. Until then it behaves like that of a leader that
// was suspended after its last check: it does not detect its end.
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

// broken is a store that fails with an error, or loses tokens, and a log of what the fence reports
// about it.
type broken struct {
	fence.Memory
	etcdtest.Paper
	err    error
	forget bool
}

func (b *broken) join(cfg *fence.Config) {
	cfg.Store, cfg.Logger = b, slog.New(slog.NewTextHandler(b, nil))
}

func (b *broken) Advance(ctx context.Context, election string, token eldest.Token) (eldest.Token, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.forget:
		return token - 1, nil
	}
	return b.Memory.Advance(ctx, election, token)
}

var errDisk = errors.New("disk on fire at dsn=secret")

// ledger is a service behind a fence, over HTTP and gRPC, that records what reaches its handlers.
type ledger struct {
	t     *testing.T
	ctx   context.Context
	fence *fence.Fence
	url   string

	mu      sync.Mutex
	written []string
	// ends receives how the handler of each stream has ended.
	ends chan error
}

func newLedger(t *testing.T, f *fence.Fence) *ledger {
	t.Helper()
	l := &ledger{t: t, ctx: etcdtest.Context(t), fence: f, ends: make(chan error, 100)}
	server := httptest.NewServer(f.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.write(r.Context(), string(body))
	})))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
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

// requireWritten requires what the handlers have written so far.
func (l *ledger) requireWritten(lines ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(l.t, lines, l.written)
}

// wrote waits until so many lines are written.
func (l *ledger) wrote(lines int) {
	l.t.Helper()
	etcdtest.Eventually(l.t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.written) == lines }, "%d lines", lines)
}

// put is the unary method, feed a stream of messages, each answered; collect a stream of
// messages with one answer.
const put, feed, collect = "/test.Ledger/Put", "/test.Ledger/Feed", "/test.Ledger/Collect"

var streams = map[string]*grpc.StreamDesc{
	feed:    {StreamName: "Feed", ClientStreams: true, ServerStreams: true},
	collect: {StreamName: "Collect", ClientStreams: true},
}

// dial serves the ledger over gRPC; it returns a connection to it.
func (l *ledger) dial(options ...grpc.DialOption) *grpc.ClientConn {
	l.t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(l.fence.UnaryServer()), grpc.StreamInterceptor(l.fence.StreamServer()))
	desc := &grpc.ServiceDesc{
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
	}
	for _, stream := range streams {
		s := *stream
		s.Handler = func(_ any, stream grpc.ServerStream) error {
			err := l.each(stream, s.ServerStreams)
			l.ends <- err
			return err
		}
		desc.Streams = append(desc.Streams, s)
	}
	server.RegisterService(desc, l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l.t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(l.t, err)
	l.t.Cleanup(func() {
		require.NoError(l.t, conn.Close())
		server.Stop()
		require.NoError(l.t, <-served)
	})
	return conn
}

// each records all messages of a stream until the caller ends it, and answers each message, or all
// at the end.
func (l *ledger) each(s grpc.ServerStream, answered bool) error {
	for {
		in := &wrapperspb.StringValue{}
		switch err := s.RecvMsg(in); {
		case errors.Is(err, io.EOF) && answered:
			return nil
		case errors.Is(err, io.EOF):
			return s.SendMsg(wrapperspb.String("all"))
		case err != nil:
			return err
		}
		l.write(s.Context(), in.GetValue())
		if answered {
			if err := s.SendMsg(in); err != nil {
				return err
			}
		}
	}
}

// posts writes a line over HTTP.
func (l *ledger) posts(te fence.Tenure, line string) error {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, l.url, strings.NewReader(line))
	require.NoError(l.t, err)
	r.Header.Set(fence.Header, "somebody=1")
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	resp, err := fence.Transport{Tenure: te, Base: base}.RoundTrip(r)
	require.Equal(l.t, "somebody=1", r.Header.Get(fence.Header), "a RoundTripper leaves the request alone")
	if err != nil {
		return err
	}
	require.NoError(l.t, resp.Body.Close())
	return fence.Refused(resp)
}

// puts writes a line by a unary call, with values in the metadata as a client without this package
// would send them.
func (l *ledger) puts(conn grpc.ClientConnInterface, line string, values ...string) error {
	return conn.Invoke(by(l.ctx, values...), put, wrapperspb.String(line), &wrapperspb.StringValue{})
}

func by(ctx context.Context, values ...string) context.Context {
	for _, value := range values {
		ctx = metadata.AppendToOutgoingContext(ctx, "Eldest-Token", value)
	}
	return ctx
}

// stream is a stream of lines.
type stream struct {
	grpc.ClientStream
	t *testing.T
}

func (l *ledger) open(conn grpc.ClientConnInterface, method string, values ...string) stream {
	l.t.Helper()
	s, err := conn.NewStream(by(l.ctx, values...), streams[method], method)
	require.NoError(l.t, err)
	return stream{s, l.t}
}

// send sends a line.
func (s stream) send(line string) error { return s.SendMsg(wrapperspb.String(line)) }

// sends sends lines, which must succeed.
func (s stream) sends(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		require.NoError(s.t, s.send(line))
	}
}

// receive receives one answer.
func (s stream) receive() error { return s.RecvMsg(&wrapperspb.StringValue{}) }

// requireRefused requires that a request was refused as older than 7.
func requireRefused(t *testing.T, err error, token eldest.Token) {
	t.Helper()
	var refused *fence.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fence.RefusedError{Election: "billing", Token: token, Newest: 7}, *refused)
	require.ErrorIs(t, err, eldest.ErrNotLeading)
	require.ErrorIs(t, err, eldest.ErrDeposed)
}

// requireOver requires that nothing was sent, because the tenure has ended on this side.
func requireOver(t *testing.T, err, cause error) {
	t.Helper()
	require.ErrorIs(t, err, eldest.ErrNotLeading)
	require.ErrorIs(t, err, cause)
	var refused *fence.RefusedError
	require.False(t, errors.As(err, &refused), "nobody was asked")
}
