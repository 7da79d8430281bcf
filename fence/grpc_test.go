package fence_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/fence/fencepb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// puts writes one line by a unary call.
func puts(ctx context.Context, conn grpc.ClientConnInterface, line string) error {
	return conn.Invoke(ctx, put, wrapperspb.String(line), &wrapperspb.StringValue{})
}

// by returns ctx with these values in the metadata, as somebody without this package
// would send them.
func by(ctx context.Context, values ...string) context.Context {
	for _, value := range values {
		ctx = metadata.AppendToOutgoingContext(ctx, "Eldest-Token", value)
	}
	return ctx
}

// requireRefused holds that a call was refused as older.
func requireRefused(t *testing.T, err error, token, newest eldest.Token) {
	t.Helper()
	var refused *fence.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fence.RefusedError{Election: "billing", Token: token, Newest: newest}, *refused)
	require.ErrorIs(t, err, eldest.ErrNotLeading)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "it is still a status")
}

// ways are the two ways of the client side.
func ways(t *testing.T, run func(t *testing.T, l *ledger, f *fence.Fence, connect func(fence.Tenure) grpc.ClientConnInterface)) {
	t.Run("Conn", func(t *testing.T) {
		l, f := &ledger{}, newFence(t)
		conn := l.serve(t, f)
		run(t, l, f, func(te fence.Tenure) grpc.ClientConnInterface { return fence.Conn(conn, te) })
	})
	t.Run("interceptors", func(t *testing.T) {
		l, f := &ledger{}, newFence(t)
		run(t, l, f, func(te fence.Tenure) grpc.ClientConnInterface {
			return l.serve(t, f, grpc.WithUnaryInterceptor(fence.UnaryClient(te)), grpc.WithStreamInterceptor(fence.StreamClient(te)))
		})
	})
}

func TestUnaryCalls(t *testing.T) {
	ways(t, func(t *testing.T, l *ledger, _ *fence.Fence, connect func(fence.Tenure) grpc.ClientConnInterface) {
		five, seven := in(5), in(7)
		older, newer := connect(five), connect(seven)
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		require.NoError(t, puts(ctx, older, "a"))
		require.NoError(t, puts(ctx, newer, "b"))
		requireRefused(t, puts(ctx, older, "late"), 5, 7)
		require.NoError(t, puts(by(ctx, "billing=1", "billing=2"), newer, "c"), "the tenure's token is in the place of others")
		seven.ends(eldest.ErrResigned)
		err := puts(ctx, newer, "not sent")
		require.ErrorIs(t, err, eldest.ErrNotLeading)
		require.ErrorIs(t, err, eldest.ErrResigned)
		require.NotErrorIs(t, err, eldest.ErrDeposed)
		require.Equal(t, []string{"a by billing=5", "b by billing=7", "c by billing=7"}, l.lines())
	})
}

func TestUnaryCodes(t *testing.T) {
	store, l := &broken{}, &ledger{}
	conn := l.serve(t, newFence(t, func(cfg *fence.Config) { cfg.Store = store }))
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
	defer cancel()
	require.NoError(t, puts(by(ctx, "billing=7"), conn, "a"))
	for name, tc := range map[string]struct {
		values []string
		code   codes.Code
		says   string
	}{
		"older":            {[]string{"billing=6"}, codes.FailedPrecondition, "token 6 is older than 7"},
		"none":             {nil, codes.InvalidArgument, "Eldest-Token is missing"},
		"two":              {[]string{"billing=7", "billing=7"}, codes.InvalidArgument, "there are 2 of them"},
		"not one":          {[]string{"billing"}, codes.InvalidArgument, "is not <election>=<token>"},
		"another election": {[]string{"orders=9"}, codes.InvalidArgument, "does not belong to this election"},
	} {
		err := puts(by(ctx, tc.values...), conn, name)
		require.Equal(t, tc.code, status.Code(err), name)
		require.ErrorContains(t, err, tc.says, name)
		require.Len(t, status.Convert(err).Details(), map[bool]int{true: 1}[name == "older"], name)
	}
	store.fails(errDisk)
	err := puts(by(ctx, "billing=8"), conn, "no store")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.NotContains(t, err.Error(), "secret")
	require.Equal(t, []string{"a by billing=7"}, l.lines())
}

func TestUnaryPassMissing(t *testing.T) {
	l := &ledger{}
	conn := l.serve(t, newFence(t, func(cfg *fence.Config) { cfg.PassMissing = true }))
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
	defer cancel()
	require.NoError(t, puts(ctx, conn, "a reader"))
	require.NoError(t, puts(by(ctx, "billing=7"), conn, "a leader"))
	s, err := conn.NewStream(ctx, streams[feed], feed)
	require.NoError(t, err)
	require.NoError(t, said(s, "a long reader"))
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.RecvMsg(&wrapperspb.StringValue{}), io.EOF)
	require.Equal(t, []string{"a reader", "a leader by billing=7", "a long reader"}, l.lines())
}

// said sends a message on a feed and waits for its answer.
func said(s grpc.ClientStream, line string) error {
	if err := s.SendMsg(wrapperspb.String(line)); err != nil {
		return err
	}
	return s.RecvMsg(&wrapperspb.StringValue{})
}

// A stream that was admitted is not admitted for ever.
func TestStreamsEndWithTheirTenure(t *testing.T) {
	ways(t, func(t *testing.T, l *ledger, f *fence.Fence, connect func(fence.Tenure) grpc.ClientConnInterface) {
		five := in(5)
		older := connect(five)
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		many, err := older.NewStream(ctx, streams[feed], feed)
		require.NoError(t, err)
		require.NoError(t, said(many, "a"))
		one, err := older.NewStream(ctx, streams[collect], collect)
		require.NoError(t, err)
		require.NoError(t, one.SendMsg(wrapperspb.String("one")))
		require.Eventually(t, func() bool { return len(l.lines()) == 2 }, etcdtest.Patience, time.Millisecond, "it was admitted")
		broken, err := older.NewStream(ctx, streams[feed], feed)
		require.NoError(t, err)
		require.NoError(t, said(broken, "b"))

		require.NoError(t, f.Admit(ctx, "billing", 7))
		requireRefused(t, said(many, "late"), 5, 7)
		requireRefused(t, many.RecvMsg(&wrapperspb.StringValue{}), 5, 7)
		require.NoError(t, one.SendMsg(wrapperspb.String("late, too")))
		requireRefused(t, one.RecvMsg(&wrapperspb.StringValue{}), 5, 7)
		late, err := older.NewStream(ctx, streams[feed], feed)
		require.NoError(t, err)
		requireRefused(t, late.RecvMsg(&wrapperspb.StringValue{}), 5, 7)

		five.ends(eldest.ErrSessionLost)
		for range 2 {
			err = broken.SendMsg(wrapperspb.String("not sent"))
			require.ErrorIs(t, err, eldest.ErrNotLeading)
			require.ErrorIs(t, err, eldest.ErrSessionLost)
		}
		require.ErrorIs(t, broken.RecvMsg(&wrapperspb.StringValue{}), eldest.ErrSessionLost)
		_, err = older.NewStream(ctx, streams[feed], feed)
		require.ErrorIs(t, err, eldest.ErrSessionLost)
		require.Equal(t, []string{"a by billing=5", "one by billing=5", "b by billing=5"}, l.lines())
	})
}

// Row 54: a stream's end is admitted like its messages, or a handler would commit at it what
// an earlier leader has sent, after a newer one has come. The client of this test sends on,
// as one does that has not learnt of its end.
func TestRow54EndOfAnOlderStreamIsRefused(t *testing.T) {
	for name, connect := range map[string]func(*grpc.ClientConn) grpc.ClientConnInterface{
		"fenced":  func(conn *grpc.ClientConn) grpc.ClientConnInterface { return fence.Conn(conn, in(5)) },
		"by hand": func(conn *grpc.ClientConn) grpc.ClientConnInterface { return conn },
	} {
		l, f := &ledger{}, newFence(t)
		conn := connect(l.serve(t, f))
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		stream, err := conn.NewStream(by(ctx, "billing=5"), streams[collect], collect)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(wrapperspb.String("a")))
		require.Eventually(t, func() bool { return len(l.lines()) == 1 }, etcdtest.Patience, time.Millisecond, "it was admitted")
		require.NoError(t, f.Admit(ctx, "billing", 7))
		require.NoError(t, stream.CloseSend())
		err = stream.RecvMsg(&wrapperspb.StringValue{})
		require.Equal(t, codes.FailedPrecondition, status.Code(err), "%s: what an older leader has sent is committed", name)
	}
}

// Row 54: after its tenure a leader ends no stream: it is broken off, and the server commits
// nothing, although no newer token has come.
func TestRow54NoEndAfterTheTenure(t *testing.T) {
	for name, desc := range map[string]string{"one answer": collect, "many": feed} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{ends: make(chan error, 1)}
			five := in(5)
			ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
			defer cancel()
			stream, err := fence.Conn(l.serve(t, newFence(t)), five).NewStream(ctx, streams[desc], desc)
			require.NoError(t, err)
			require.NoError(t, stream.SendMsg(wrapperspb.String("a")))
			require.Eventually(t, func() bool { return len(l.lines()) == 1 }, etcdtest.Patience, time.Millisecond)
			five.ends(eldest.ErrSessionLost)
			err = stream.CloseSend()
			require.ErrorIs(t, err, eldest.ErrNotLeading, "the stream is ended after its tenure")
			require.ErrorIs(t, err, eldest.ErrSessionLost)
			require.Equal(t, codes.Canceled, status.Code(<-l.ends), "the handler has met the end")
			for err = nil; err == nil; { // what was answered before
				err = stream.RecvMsg(&wrapperspb.StringValue{})
			}
			require.ErrorIs(t, err, eldest.ErrSessionLost)
		})
	}
}

// fed is a stream that has a message whenever one is wanted.
type fed struct {
	grpc.ServerStream
	ctx      context.Context
	received int
}

func (f *fed) Context() context.Context { return f.ctx }
func (f *fed) RecvMsg(any) error        { f.received++; return nil }

// Row 54: what was refused once stays refused, or a handler that receives again would go on
// after a gap: here the store has failed for one message and no longer.
func TestRow54RefusalOfAStreamIsRemembered(t *testing.T) {
	store := &broken{}
	f := newFence(t, func(cfg *fence.Config) { cfg.Store = store })
	stream := &fed{ctx: metadata.NewIncomingContext(t.Context(), metadata.Pairs("eldest-token", "billing=7"))}
	require.NoError(t, f.StreamServer()(nil, stream, &grpc.StreamServerInfo{}, func(_ any, s grpc.ServerStream) error {
		require.NoError(t, s.RecvMsg(nil))
		store.fails(errDisk)
		refused := s.RecvMsg(nil)
		require.Equal(t, codes.Unavailable, status.Code(refused))
		store.fails(nil)
		for range 2 {
			require.Equal(t, refused, s.RecvMsg(nil), "the stream goes on after a gap")
		}
		require.Equal(t, 2, stream.received)
		return nil
	}))
}

// A stream of the present leader is as it would be without a fence.
func TestStreamsGoOn(t *testing.T) {
	ways(t, func(t *testing.T, l *ledger, _ *fence.Fence, connect func(fence.Tenure) grpc.ClientConnInterface) {
		conn := connect(in(5))
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		many, err := conn.NewStream(ctx, streams[feed], feed)
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, said(many, fmt.Sprint("m", i)))
		}
		require.NoError(t, many.CloseSend())
		require.ErrorIs(t, many.RecvMsg(&wrapperspb.StringValue{}), io.EOF)

		one, err := conn.NewStream(ctx, streams[collect], collect)
		require.NoError(t, err)
		require.NoError(t, one.SendMsg(wrapperspb.String("c")))
		require.NoError(t, one.CloseSend())
		all := &wrapperspb.StringValue{}
		require.NoError(t, one.RecvMsg(all))
		require.Equal(t, "all", all.GetValue())
		require.Equal(t, []string{"m0 by billing=5", "m1 by billing=5", "m2 by billing=5", "c by billing=5"}, l.lines())
	})
}

// canned is a connection that ends each call in one way.
type canned struct{ err error }

func (c canned) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return c.err }

func (c canned) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, c.err
}

// A refusal of another tenure, which a service has met at a fence further behind and passed
// on, says nothing of this one; nor does one that cannot be.
func TestRefusalsOfOthersArePassedOn(t *testing.T) {
	detailed := func(code codes.Code, election string, token, newest int64) error {
		st, err := status.New(code, "no").WithDetails(&fencepb.Refused{Election: []byte(election), Token: token, Newest: newest})
		require.NoError(t, err)
		return st.Err()
	}
	call := func(err error) error { return puts(t.Context(), fence.Conn(canned{err}, in(5)), "x") }
	requireRefused(t, call(detailed(codes.FailedPrecondition, "billing", 5, 7)), 5, 7)
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
	_, err := fence.Conn(canned{detailed(codes.FailedPrecondition, "billing", 5, 7)}, in(5)).NewStream(t.Context(), streams[feed], feed)
	requireRefused(t, err, 5, 7)
}
