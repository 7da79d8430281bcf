package curator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 43: any node answers like the leader. Row 44: only the leader has the service. A follower
// stores which methods the leader marks as unary, and treats no other method as unary.
func TestRequirement43AnyNodeAnswers(t *testing.T) {
	everywhere(t, echoing, func(t *testing.T, n, _ *node) {
		n.answers("hello")
		err := n.conn.Invoke(etcdtest.Context(t), "/test.Script/Missing", &message{}, &message{})
		requireCode(t, codes.Unimplemented, err, "unknown method Missing for service test.Script")
		requireCode(t, codes.Unimplemented, n.conn.Invoke(etcdtest.Context(t), "/test.Nothing/Unary", &message{}, &message{}))
	})
	_, follower := pair(t, echoing)
	for _, method := range []string{bidiMethod, serverMethod, clientMethod, "/test.Script/Missing", unaryMethod} {
		stream := follower.open(method)
		_ = stream.SendMsg(&message{}) // in any kind of call
		_ = stream.CloseSend()
		_ = stream.end()
		_, unary := follower.router.Now().Peer.unary.Load(method)
		require.Equal(t, method == unaryMethod, unary, method)
	}
}

// Row 44: all three kinds of streams. The handler decides when its header is sent, before any message
// in either direction, and when it has received enough. A half-close is passed on, and the service
// may continue to send after it. (Metadata and statuses of any kind are in FuzzForwarded.)
func TestRequirement44Streams(t *testing.T) {
	s := &script{stream: func(stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		if err := stream.SendHeader(metadata.MD{"method": {method}}); err != nil {
			return err
		}
		var all string
		for {
			in, err := received(stream)
			if errors.Is(err, io.EOF) {
				return replies(stream, all)
			} else if err != nil {
				return err
			}
			all += in
			switch {
			case in == "enough":
				return status.Error(codes.Aborted, "it is")
			case method == serverMethod:
				for range 100 {
					_ = replies(stream, in) // its error comes again at the end
				}
				return replies(stream, "last")
			case method == bidiMethod:
				if err := replies(stream, in); err != nil {
					return err
				}
			}
		}
	}}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		for _, method := range []string{clientMethod, serverMethod, bidiMethod} {
			stream := n.open(method)
			if method == serverMethod {
				stream.send("x") // which gRPC sends with the half-close
				require.NoError(t, stream.CloseSend())
			}
			header, err := stream.Header()
			require.NoError(t, err)
			require.Equal(t, []string{method}, header["method"])
			for range 100 {
				if method != serverMethod {
					stream.send("x")
				}
				if method != clientMethod {
					stream.expect("x") // of bidiMethod before the next is sent
				}
			}
			require.NoError(t, stream.CloseSend())
			stream.expect(map[bool]string{true: "last", false: strings.Repeat("x", 100)}[method == serverMethod])
			require.NoError(t, stream.end())
		}
		stream := n.open(bidiMethod)
		stream.send("enough")
		requireCode(t, codes.Aborted, stream.end(), "it is")
	})
}

// Row 44: when the caller ends its call, by a cancel or a deadline, the handler's context ends.
func TestRequirement44CancelAndDeadline(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	s := &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		done := n.callMany(ctx, 1, "")
		etcdtest.Take(t, began, "the handler")
		cancel()
		requireCode(t, codes.Canceled, etcdtest.Take(t, done, "the caller"))
		require.ErrorIs(t, etcdtest.Take(t, ended, "the handler's end"), context.Canceled)

		_, err := n.unary(etcdtest.ContextFor(t, 2*time.Second), "") // the handler begins before the deadline
		requireCode(t, codes.DeadlineExceeded, err)
		etcdtest.Take(t, began, "the handler")
		require.Error(t, etcdtest.Take(t, ended, "the handler's end"))
	})
}

// Row 58: metadata that HTTP/2 allows and gRPC's own client does not send, such as non-ASCII values
// and unusual keys, reaches the service at each node; and so does such metadata of the service's
// answer.
func TestRow58OddMetadata(t *testing.T) {
	var saw metadata.MD
	texts := metadata.MD{"text": {"plain", "é", "with\ttab"}, "x!odd": {"odd"}, "x!odd-bin": {"\x00\xff"}, "plain": {"too"}}
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		saw, _ = metadata.FromIncomingContext(ctx)
		if err := grpc.SetHeader(ctx, metadata.MD{"answered": {"é", "plain"}, "plain": {"too"}}); err != nil {
			return nil, err
		}
		return in, grpc.SetTrailer(ctx, metadata.MD{"ended": {"é"}})
	}}
	client := plainHTTP(t)
	var seen []metadata.MD
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		request, err := http.NewRequestWithContext(etcdtest.Context(t), http.MethodPost, "http://"+n.address+unaryMethod, bytes.NewReader(onWire(0, wrapped("hello"))))
		require.NoError(t, err)
		request.Host = "called.test"
		request.Header = http.Header{"content-type": {"application/grpc"}, "te": {"trailers"}, "user-agent": {"ähm"}, "grpc-accept-encoding": {"gzip"}}
		for key, values := range texts {
			request.Header[key] = values
		}
		request.Header["x!odd-bin"] = []string{"AP8"}
		answer, err := client.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Empty(t, answer.Header.Get("grpc-status"), "the call was refused: %v", answer.Header)
		require.Equal(t, "0", answer.Trailer.Get("grpc-status"), "the call has failed: %v", answer.Trailer)
		require.Equal(t, []string{"é", "plain"}, answer.Header["Answered"])
		require.Equal(t, []string{"too"}, answer.Header["Plain"])
		require.Equal(t, []string{"é"}, answer.Trailer["Ended"])
		for key, values := range texts {
			require.Equal(t, values, saw[key], key)
		}
		require.Equal(t, []string{"ähm"}, saw["user-agent"])
		seen = append(seen, saw)
		require.Equal(t, seen[0], saw, "the service sees that there was a hop")
	})
}
