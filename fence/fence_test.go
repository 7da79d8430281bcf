package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/fence/fencepb"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// stopped is the leadership of a process that was suspended after its last check: the process never
// detects the end.
type stopped struct{ *election.Leadership }

func (stopped) Err() error { return nil }

// Requirement 19, with tenures won on etcd: on HTTP and on gRPC the fence admits the leader, and
// refuses the one before it, even if that one has not detected its end. The client recognises the
// refusal. A leader that has detected its end sends nothing.
func TestRequirement19OlderTokensAreRefused(t *testing.T) {
	client := etcdtest.Shared(t).Client(t)
	lead := func() *election.Leadership { return electiontest.Join(t, client, "requirement 19").Lead(t) }
	// One store for both protocols: it is one resource.
	l := newLedger(t, newFence(t, func(cfg *fence.Config) { cfg.Elections = []string{"requirement 19"} }))
	conn := l.dial()
	older := lead()
	for name, send := range map[string]func(fence.Tenure) error{
		"HTTP": func(te fence.Tenure) error { return l.posts(te, "x") },
		"gRPC": func(te fence.Tenure) error { return l.puts(fence.Conn(conn, te), "x") },
	} {
		require.NoError(t, send(older), name)
		_, err := client.Delete(t.Context(), older.Key())
		require.NoError(t, err)
		newer := lead()
		require.Greater(t, newer.Token(), older.Token())
		require.NoError(t, send(stopped{older}), "the fence learns of a tenure when its first request comes")
		require.NoError(t, send(newer), name)

		var refused *fence.RefusedError
		require.ErrorAs(t, send(stopped{older}), &refused, name)
		require.Equal(t, fence.RefusedError{Election: "requirement 19", Token: older.Token(), Newest: newer.Token()}, *refused)
		etcdtest.Take(t, older.Done(), "the end of the older tenure")
		l.written = nil
		requireOver(t, send(older), eldest.ErrDeposed)
		l.requireWritten()
		older = newer
	}
	require.NoError(t, older.Resign(t.Context()))
}

// The answers of a fence, on HTTP and on gRPC.
func TestAnswers(t *testing.T) {
	store := &broken{}
	f := newFence(t, store.join)
	reached := 0
	h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	l := newLedger(t, f)
	conn := l.dial()
	require.NoError(t, l.puts(conn, "a", "billing=19"))
	for name, tc := range map[string]struct {
		values []string
		http   int
		grpc   codes.Code
		says   string
	}{
		"the newest":       {[]string{"billing=19"}, 200, codes.OK, ""},
		"older":            {[]string{"billing=18"}, 412, codes.FailedPrecondition, `eldest: fence election "billing": not leading: token 18 is older than 19, the newest seen`},
		"none":             {nil, 428, codes.InvalidArgument, "Eldest-Token is missing"},
		"two":              {[]string{"billing=19", "billing=19"}, 400, codes.InvalidArgument, "the request carries 2 tokens"},
		"not one":          {[]string{"billing=new"}, 400, codes.InvalidArgument, "not a token"},
		"another election": {[]string{"orders=99"}, 400, codes.InvalidArgument, "not configured for this election"},
		"no store":         {[]string{"billing=20"}, 503, codes.Unavailable, "cannot be read now"},
		"a store forgets":  {[]string{"billing=21"}, 503, codes.Unavailable, "cannot be read now"},
	} {
		store.err, store.forget = nil, name == "a store forgets"
		if name == "no store" {
			store.err = errDisk
		}
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		for _, value := range tc.values {
			r.Header.Add("eldest-token", value)
		}
		w, before := httptest.NewRecorder(), reached
		h.ServeHTTP(w, r)
		require.Equal(t, tc.http, w.Code, name)
		require.Equal(t, tc.http == 200, reached > before)
		require.Contains(t, w.Body.String(), tc.says, name)
		if tc.http != 200 {
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		}
		require.Equal(t, name == "older", w.Header().Get("Eldest-Newest") == "billing=19" && w.Header().Get("Eldest-Token") == "billing=18")
		err := l.puts(conn, "b", tc.values...)
		require.Equal(t, tc.grpc, status.Code(err), name)
		require.Contains(t, status.Convert(err).Message(), tc.says, name)
		require.Len(t, status.Convert(err).Details(), map[bool]int{true: 1}[name == "older"], name)
		require.NotContains(t, w.Body.String()+status.Convert(err).Message(), "secret", "the sender does not receive what is wrong inside")
	}
	l.requireWritten("a by billing=19", "b by billing=19")
	require.Contains(t, store.String(), `level=WARN msg="an older token was refused" election=billing token=18 newest=19`)
	require.Contains(t, store.String(), "level=ERROR")
	require.Contains(t, store.String(), "secret")
}

// Requests without a token pass if that is configured; a token that is there must be valid. Tokens
// of two elections are kept apart, whatever the numbers.
func TestPassMissing(t *testing.T) {
	l := newLedger(t, newFence(t, func(cfg *fence.Config) { cfg.PassMissing, cfg.Elections = true, []string{"billing", "a=b"} }))
	conn := l.dial()
	require.NoError(t, l.puts(conn, "a reader"))
	s := l.open(conn, feed)
	s.sends("a long reader")
	require.NoError(t, s.receive())
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.receive(), io.EOF)
	require.Equal(t, codes.InvalidArgument, status.Code(l.puts(conn, "x", "billing=x")))
	for _, value := range []string{"billing=900", "a%3Db=3", "a%3Db=4"} {
		require.NoError(t, l.puts(conn, "a leader", value))
	}
	for _, value := range []string{"billing=899", "a%3Db=2"} {
		require.Equal(t, codes.FailedPrecondition, status.Code(l.puts(conn, "x", value)))
	}
	l.requireWritten("a reader", "a long reader", "a leader by billing=900", "a leader by a%3Db=3", "a leader by a%3Db=4")
}

// ways runs a test with both forms of the client side.
func ways(t *testing.T, run func(t *testing.T, l *ledger, connect func(fence.Tenure) grpc.ClientConnInterface)) {
	t.Run("Conn", func(t *testing.T) {
		l := newLedger(t, newFence(t))
		conn := l.dial()
		run(t, l, func(te fence.Tenure) grpc.ClientConnInterface { return fence.Conn(conn, te) })
	})
	t.Run("interceptors", func(t *testing.T) {
		l := newLedger(t, newFence(t))
		run(t, l, func(te fence.Tenure) grpc.ClientConnInterface {
			return l.dial(grpc.WithUnaryInterceptor(fence.UnaryClient(te)), grpc.WithStreamInterceptor(fence.StreamClient(te)))
		})
	})
}

// Calls and streams of the present leader work as without a fence. A stream that was admitted can
// be refused later.
func TestStreamsEndWithTheirTenure(t *testing.T) {
	ways(t, func(t *testing.T, l *ledger, connect func(fence.Tenure) grpc.ClientConnInterface) {
		five, seven := in(5), in(7)
		older, newer := connect(five), connect(seven)
		require.NoError(t, l.puts(older, "u", "billing=1", "billing=2"), "the tenure's token is in the place of others")
		many := l.open(older, feed)
		many.sends("m0")
		require.NoError(t, many.receive())
		one := l.open(older, collect)
		one.sends("c0")
		l.wrote(3)
		broken := l.open(older, feed)
		broken.sends("b")
		require.NoError(t, broken.receive())

		require.NoError(t, l.puts(newer, "n"))
		requireRefused(t, l.puts(older, "late"), 5)
		many.sends("late")
		requireRefused(t, many.receive(), 5)
		one.sends("late, too")
		requireRefused(t, one.receive(), 5)
		requireRefused(t, l.open(older, feed).receive(), 5)

		five.ends(eldest.ErrSessionLost)
		for range 2 {
			requireOver(t, broken.send("not sent"), eldest.ErrSessionLost)
		}
		requireOver(t, broken.receive(), eldest.ErrSessionLost)
		_, err := older.NewStream(l.ctx, streams[feed], feed)
		requireOver(t, err, eldest.ErrSessionLost)
		requireOver(t, l.puts(older, "not sent"), eldest.ErrSessionLost)

		one = l.open(newer, collect)
		one.sends("c1", "c2")
		require.NoError(t, one.CloseSend())
		require.NoError(t, one.receive())
		l.requireWritten("u by billing=5", "m0 by billing=5", "c0 by billing=5", "b by billing=5", "n by billing=7", "c1 by billing=7", "c2 by billing=7")
	})
}

// Row 54: the end of a stream is admitted like its messages. Otherwise a handler would commit at
// the end what an earlier leader has sent, after a newer token was admitted. The client of this
// test continues to send, like one that has not detected the end of its tenure.
func TestRow54EndOfAnOlderStreamIsRefused(t *testing.T) {
	for name, connect := range map[string]func(*grpc.ClientConn) grpc.ClientConnInterface{
		"fenced":  func(conn *grpc.ClientConn) grpc.ClientConnInterface { return fence.Conn(conn, in(5)) },
		"by hand": func(conn *grpc.ClientConn) grpc.ClientConnInterface { return conn },
	} {
		l := newLedger(t, newFence(t))
		stream := l.open(connect(l.dial()), collect, "billing=5")
		stream.sends("a")
		l.wrote(1)
		require.NoError(t, l.fence.Admit(l.ctx, "billing", 7))
		require.NoError(t, stream.CloseSend())
		require.Equal(t, codes.FailedPrecondition, status.Code(stream.receive()), "%s: what an older leader has sent is committed", name)
	}
}

// Row 54: after its tenure a leader does not end a stream: the stream is cancelled, and the server
// commits nothing, although no newer token has come.
func TestRow54NoEndAfterTheTenure(t *testing.T) {
	for _, method := range []string{collect, feed} {
		l, five := newLedger(t, newFence(t)), in(5)
		stream := l.open(fence.Conn(l.dial(), five), method)
		stream.sends("a")
		l.wrote(1)
		five.ends(eldest.ErrSessionLost)
		err := stream.CloseSend()
		require.ErrorIs(t, err, eldest.ErrNotLeading, "the stream is ended after its tenure")
		requireOver(t, err, eldest.ErrSessionLost)
		require.Equal(t, codes.Canceled, status.Code(<-l.ends), "the handler has met the end")
		for err = nil; err == nil; { // what was answered before
			err = stream.receive()
		}
		require.ErrorIs(t, err, eldest.ErrSessionLost)
	}
}

// What the server has answered remains the answer if the leader tries to send more after its tenure:
// the messages may have been committed, or refused for another reason.
func TestAnswerBeforeTheEndOfTheTenure(t *testing.T) {
	store := &broken{}
	l, five := newLedger(t, newFence(t, store.join)), in(5)
	conn := fence.Conn(l.dial(), five)
	committed, failed := l.open(conn, feed), l.open(conn, collect)
	require.NoError(t, committed.CloseSend())
	require.NoError(t, <-l.ends)
	failed.sends("a")
	l.wrote(1)
	store.err = errDisk
	failed.sends("b")
	for _, s := range []stream{committed, failed} {
		header, err := s.Header() // waits for the end, since the server has sent no message
		require.NoError(t, err)
		require.Empty(t, header)
	}
	five.ends(eldest.ErrSessionLost)
	for _, s := range []stream{committed, failed} {
		requireOver(t, s.CloseSend(), eldest.ErrSessionLost)
	}
	require.Equal(t, io.EOF, committed.receive(), "the server has committed it")
	require.Equal(t, codes.Unavailable, status.Code(failed.receive()), "the server has answered it")
}

// opened is a connection that records the context of its last stream.
type opened struct {
	grpc.ClientConnInterface
	ctx context.Context
}

func (o *opened) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	o.ctx = ctx
	return o.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

// A stream of gRPC that a message could not be sent on has ended; the caller need not receive from
// it. So nothing of it may be left in the caller's context, which often is that of the tenure.
func TestStreamThatCannotSendIsForgotten(t *testing.T) {
	l := newLedger(t, newFence(t))
	conn := &opened{ClientConnInterface: l.dial(grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(10)))}
	s := l.open(fence.Conn(conn, in(5)), feed)
	s.sends("short")
	require.NoError(t, conn.ctx.Err())
	require.Equal(t, codes.ResourceExhausted, status.Code(s.send("longer than ten bytes")))
	require.ErrorIs(t, conn.ctx.Err(), context.Canceled, "the stream's context is left in the caller's")
}

// fed is a stream that always has another message.
type fed struct {
	grpc.ServerStream
	ctx      context.Context
	received int
}

func (f *fed) Context() context.Context { return f.ctx }
func (f *fed) RecvMsg(any) error        { f.received++; return nil }

// Row 54: a refusal of a stream is permanent. Otherwise a handler that receives again would
// continue after a gap: here the store fails for one message only.
func TestRow54RefusalOfAStreamIsRemembered(t *testing.T) {
	store := &broken{}
	stream := &fed{ctx: metadata.NewIncomingContext(t.Context(), metadata.Pairs("eldest-token", "billing=7"))}
	require.NoError(t, newFence(t, store.join).StreamServer()(nil, stream, &grpc.StreamServerInfo{}, func(_ any, s grpc.ServerStream) error {
		require.NoError(t, s.RecvMsg(nil))
		store.err = errDisk
		refused := s.RecvMsg(nil)
		require.Equal(t, codes.Unavailable, status.Code(refused))
		require.NotContains(t, refused.Error(), "not carried out", "a message before it was")
		store.err = nil
		for range 2 {
			require.Equal(t, refused, s.RecvMsg(nil), "the stream goes on after a gap")
		}
		require.Equal(t, 2, stream.received)
		return nil
	}))
}

// A store may be a client of another fence, and be refused there. That is a failure of the store: it
// is no answer to the sender, whose token may be the newest.
func TestRefusalOfTheStoreIsItsFailure(t *testing.T) {
	for _, election := range []string{"billing", "stores"} {
		own := fmt.Errorf("put: %w", &fence.RefusedError{Election: election, Token: 5, Newest: 7})
		store := &broken{err: own}
		f := newFence(t, store.join)
		err := f.Admit(t.Context(), "billing", 5)
		require.ErrorIs(t, err, own)
		require.NotContains(t, err.Error(), "\n", "an error is one line")
		r, w := httptest.NewRequest(http.MethodPut, "/", nil), httptest.NewRecorder()
		r.Header.Set(fence.Header, "billing=5")
		f.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "the sender is refused")
		require.NoError(t, fence.Refused(w.Result()))
		err = newLedger(t, f).puts(newLedger(t, f).dial(), "x", "billing=5")
		require.Equal(t, codes.Unavailable, status.Code(err), "the sender is refused")
		require.Empty(t, status.Convert(err).Details())
		require.NotContains(t, w.Body.String()+err.Error(), "older", "the sender does not receive what is wrong inside")
	}
}

// canned is a connection that ends each call with one error.
type canned struct{ err error }

func (c canned) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return c.err }

func (c canned) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, c.err
}

// A refusal of another tenure, which a service has received from another fence and passed on, does
// not concern this tenure; nor does an invalid refusal.
func TestRefusalsOfOthersArePassedOn(t *testing.T) {
	detailed := func(code codes.Code, election string, token, newest int64) error {
		st, err := status.New(code, "no").WithDetails(&fencepb.Refused{Election: []byte(election), Token: token, Newest: newest})
		require.NoError(t, err)
		return st.Err()
	}
	call := func(err error) error { return fence.Conn(canned{err}, in(5)).Invoke(t.Context(), put, nil, nil) }
	own := detailed(codes.FailedPrecondition, "billing", 5, 7)
	requireRefused(t, call(own), 5)
	require.Equal(t, codes.FailedPrecondition, status.Code(call(own)), "it is still a status")
	_, err := fence.Conn(canned{own}, in(5)).NewStream(t.Context(), streams[feed], feed)
	requireRefused(t, err, 5)
	for name, err := range map[string]error{
		"another election": detailed(codes.FailedPrecondition, "orders", 5, 7),
		"another tenure":   detailed(codes.FailedPrecondition, "billing", 4, 7),
		"not newer":        detailed(codes.FailedPrecondition, "billing", 5, 5),
		"no name":          detailed(codes.FailedPrecondition, "", 5, 7),
		"another code":     detailed(codes.Aborted, "billing", 5, 7),
		"no details":       status.Error(codes.FailedPrecondition, "the account is closed"),
		"no status":        errDisk,
	} {
		require.Equal(t, err, call(err), name)
	}

	refused := func(code int, token, newest, sent string) error {
		resp := &http.Response{StatusCode: code, Header: http.Header{}, Request: &http.Request{Header: http.Header{}}}
		resp.Header.Set(fence.Header, token)
		resp.Header.Set("Eldest-Newest", newest)
		resp.Request.Header.Set(fence.Header, sent)
		return fence.Refused(resp)
	}
	require.Error(t, refused(412, "billing=5", "billing=7", "billing=5"))
	require.Error(t, refused(412, "billing=5", "billing=7", ""), "whoever put it there")
	for name, err := range map[string]error{
		"nothing":                     fence.Refused(nil),
		"another status":              refused(409, "billing=5", "billing=7", "billing=5"),
		"a 412 of the handler's":      refused(412, "", "", "billing=5"),
		"without the newest":          refused(412, "billing=5", "", "billing=5"),
		"a newest that is none":       refused(412, "billing=5", "7", "billing=5"),
		"a newest of another":         refused(412, "billing=5", "orders=7", "billing=5"),
		"a newest that is no newer":   refused(412, "billing=5", "billing=5", "billing=5"),
		"to somebody else's election": refused(412, "orders=5", "orders=7", "billing=5"),
		"to somebody else's token":    refused(412, "billing=4", "billing=7", "billing=5"),
	} {
		require.NoError(t, err, name)
	}
	// A handler that finds an older token in its own store answers as the fence does.
	w := httptest.NewRecorder()
	(&fence.RefusedError{Election: "billing", Token: 5, Newest: 7}).ServeHTTP(w, nil)
	requireRefused(t, fence.Refused(w.Result()), 5)
}

// If the sender of a request has cancelled it, it is not admitted, and the store has not failed.
func TestTheSenderWentAway(t *testing.T) {
	store := &broken{err: context.Canceled}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newFence(t, store.join).Admit(ctx, "billing", 5)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eldest.ErrNotLeading)
	require.Empty(t, store.String())
}

// Memory after a restart: the older leader is admitted, until the newer one sends a request again.
func TestMemoryForgetsAtARestart(t *testing.T) {
	for range 2 {
		f := newFence(t)
		require.NoError(t, f.Admit(t.Context(), "billing", 5), "it has seen nothing")
		require.NoError(t, f.Admit(t.Context(), "billing", 7))
		requireRefused(t, f.Admit(t.Context(), "billing", 5), 5)
	}
}

// TestConcurrentSafe: once a token was admitted, no older one is, for any caller.
func TestConcurrentSafe(t *testing.T) {
	const workers, requests, tokens = 16, 500, 200
	elections := []string{"billing", "orders"}
	f := newFence(t, func(cfg *fence.Config) { cfg.Elections = elections })
	var newest [2]atomic.Int64 // the greatest that is known to have been admitted
	var admitted, refused atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		wg.Go(func() {
			for range requests {
				which, token := random.IntN(2), random.Int64N(tokens)+1
				known := newest[which].Load()
				err := f.Admit(t.Context(), elections[which], eldest.Token(token))
				var older *fence.RefusedError
				switch {
				case err == nil && token < known:
					t.Errorf("token %d was admitted after %d", token, known)
				case err == nil:
					admitted.Add(1)
					for seen := newest[which].Load(); seen < token && !newest[which].CompareAndSwap(seen, token); {
						seen = newest[which].Load()
					}
				case !errors.As(err, &older):
					t.Error(err)
				case int64(older.Token) != token || int64(older.Newest) < known || older.Election != elections[which]:
					t.Errorf("token %d, when %d had been admitted: %v", token, known, err)
				default:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, workers*requests, admitted.Load()+refused.Load())
	require.Positive(t, admitted.Load())
	require.Positive(t, refused.Load())
}
