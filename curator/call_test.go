package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// asking runs a call in the background.
func asking(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// unary calls the script's unary method.
func (n *node) unary(ctx context.Context, in string, options ...grpc.CallOption) (string, error) {
	out := &message{}
	err := n.conn.Invoke(ctx, unaryMethod, wrapperspb.Bytes([]byte(in)), out, options...)
	return string(out.GetValue()), err
}

// call is unary with the time limit of the test.
func (n *node) call(in string, options ...grpc.CallOption) error {
	_, err := n.unary(etcdtest.Context(n.t), in, options...)
	return err
}

// ask is call in the background. An answer that is not the echo is an error.
func (n *node) ask(in string) <-chan error {
	ctx := etcdtest.Context(n.t)
	return asking(func() error {
		out, err := n.unary(ctx, in)
		if err == nil && out != in {
			err = fmt.Errorf("%q is the answer to %q", out, in)
		}
		return err
	})
}

// answers requires an echo.
func (n *node) answers(in string, options ...grpc.CallOption) {
	n.t.Helper()
	out, err := n.unary(etcdtest.Context(n.t), in, options...)
	require.NoError(n.t, err)
	require.Equal(n.t, in, out)
}

// untouched requires that a call is refused in the service's place, with a reason, and that nothing
// was applied.
func (n *node) untouched(because string) {
	n.t.Helper()
	err := n.call("")
	require.True(n.t, requireRetry(n.t, err).GetNothingApplied(), "%v", err)
	require.ErrorContains(n.t, err, because)
}

// holds waits until a number of calls wait at the node.
func (n *node) holds(calls int, what string) {
	n.t.Helper()
	etcdtest.Eventually(n.t, func() bool { return n.backlog.load().calls == calls }, "%s", what)
}

// empty waits until nothing waits and nothing is held.
func (n *node) empty() {
	n.t.Helper()
	etcdtest.Eventually(n.t, func() bool { return n.backlog.load() == usage{} }, "nothing waits, and nothing is held")
	require.Empty(n.t, n.backlog.their, "a caller that has nothing is forgotten")
}

// open begins a stream of a method.
func (n *node) open(method string, options ...grpc.CallOption) *flow {
	n.t.Helper()
	return n.openWith(etcdtest.Context(n.t), method, options...)
}

func (n *node) openWith(ctx context.Context, method string, options ...grpc.CallOption) *flow {
	n.t.Helper()
	desc := &grpc.StreamDesc{ClientStreams: method != serverMethod, ServerStreams: method != clientMethod}
	s, err := n.conn.NewStream(ctx, desc, method, options...)
	require.NoError(n.t, err)
	return &flow{t: n.t, ClientStream: s}
}

// flow is a caller's stream.
type flow struct {
	t testing.TB
	grpc.ClientStream
}

func (f *flow) send(all ...string) {
	f.t.Helper()
	for _, s := range all {
		require.NoError(f.t, f.SendMsg(wrapperspb.Bytes([]byte(s))))
	}
}

func (f *flow) receive() (string, error) {
	m := &message{}
	err := f.RecvMsg(m)
	return string(m.GetValue()), err
}

// expect receives messages.
func (f *flow) expect(all ...string) {
	f.t.Helper()
	for _, want := range all {
		got, err := f.receive()
		require.NoError(f.t, err)
		require.True(f.t, got == want, "%.40q instead of %.40q", got, want) // which may be large
	}
}

// end receives until the stream ends.
func (f *flow) end() error {
	for {
		if _, err := f.receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// closes half-closes the stream, and requires that it ends without an error.
func (f *flow) closes() {
	f.t.Helper()
	require.NoError(f.t, f.CloseSend())
	require.NoError(f.t, f.end())
}

// requireCode asserts the code of an answer, and a part of its text.
func requireCode(t testing.TB, want codes.Code, err error, text ...string) {
	t.Helper()
	require.Equal(t, want, status.Code(err), "%v", err)
	for _, part := range text {
		require.ErrorContains(t, err, part)
	}
}

// requireRetry asserts the answer of a node in the service's place, and returns its detail.
func requireRetry(t testing.TB, err error) *curatorpb.LostLeadership {
	t.Helper()
	requireCode(t, codes.Unavailable, err, "can be retried")
	details := status.Convert(err).Details()
	require.Len(t, details, 1, "%v", err)
	detail, ok := details[0].(*curatorpb.LostLeadership)
	require.True(t, ok)
	require.Equal(t, "test", detail.GetElection())
	return detail
}
