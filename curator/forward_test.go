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
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

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

// colours is metadata of every kind: more than one value, binary, empty.
func colours() metadata.MD {
	return metadata.MD{
		"colour":     {"red", "green"},
		"colour-bin": {"\x00\xff", "", "\x01,\x02"},
		"empty":      {""},
	}
}

func requireColours(t testing.TB, where string, all ...metadata.MD) {
	t.Helper()
	for _, got := range all {
		for k, v := range colours() {
			require.Equal(t, v, got[k], "%s: %s", where, k)
		}
		for k := range got {
			require.False(t, strings.HasPrefix(k, "eldest-"), "%s: %s is the curators' own", where, k)
		}
		// The caller also receives gRPC's own encoding of the details.
		require.LessOrEqual(t, len(got["grpc-status-details-bin"]), 1, where)
	}
}

// witness is what a handler received, for comparison between nodes.
type witness struct {
	md       metadata.MD
	method   string
	deadline bool
}

func (w *witness) sees(ctx context.Context) {
	w.md, _ = metadata.FromIncomingContext(ctx)
	w.method, _ = grpc.Method(ctx)
	_, w.deadline = ctx.Deadline()
	delete(w.md, ":authority") // it differs between the two servers
}

// strange is a status with details, which must arrive exactly once.
func strange() error {
	st, err := status.New(codes.Code(42), "strange é \n %").WithDetails(durationpb.New(7), wrapperspb.String("detail"))
	if err != nil {
		return err
	}
	return st.Err()
}

func requireStrange(t testing.TB, err error) {
	t.Helper()
	require.Equal(t, status.Convert(strange()).Proto().String(), status.Convert(err).Proto().String())
}

// Row 44: all three kinds of streams, with their metadata. The handler decides when its header is
// sent, before any message in either direction, and when it has received enough. A half-close is
// passed on, and the service may continue to send after it.
func TestRequirement44Streams(t *testing.T) {
	var saw witness
	s := &script{stream: func(stream grpc.ServerStream) error {
		saw.sees(stream.Context())
		if err := stream.SendHeader(colours()); err != nil {
			return err
		}
		stream.SetTrailer(colours())
		var all []string
		for {
			in, err := received(stream)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			all = append(all, in)
			if saw.method == serverMethod || in == "enough" {
				break
			}
			if saw.method == bidiMethod {
				if err := replies(stream, in); err != nil {
					return err
				}
			}
		}
		for range map[string]int{clientMethod: 1, serverMethod: 100, bidiMethod: 1}[saw.method] {
			if err := replies(stream, strings.Join(all, "")); err != nil {
				return err
			}
		}
		if saw.method == clientMethod {
			return nil
		}
		return strange()
	}}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		for _, method := range []string{clientMethod, serverMethod, bidiMethod} {
			stream := n.openWith(metadata.NewOutgoingContext(etcdtest.Context(t), colours()), method)
			header, err := stream.Header()
			require.NoError(t, err)
			switch method {
			case clientMethod:
				for range 100 {
					stream.send("x")
				}
				require.NoError(t, stream.CloseSend())
				stream.expect(strings.Repeat("x", 100))
				require.NoError(t, stream.end())
			case serverMethod:
				stream.send("y")
				require.NoError(t, stream.CloseSend())
				for range 100 {
					stream.expect("y")
				}
				requireStrange(t, stream.end())
			default:
				for range 100 {
					stream.send("z") // each is answered before the next is sent
					stream.expect("z")
				}
				require.NoError(t, stream.CloseSend())
				stream.expect(strings.Repeat("z", 100)) // after the half-close
				requireStrange(t, stream.end())
			}
			requireColours(t, method, header, stream.Trailer(), saw.md)
			require.Equal(t, method, saw.method)
		}
		stream := n.open(bidiMethod)
		stream.send("enough")
		stream.expect("enough")
		requireStrange(t, stream.end())
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
		done := asking(func() error { _, err := n.unary(ctx, ""); return err })
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
	var saw witness
	texts := metadata.MD{"text": {"plain", "é", "with\ttab"}, "x!odd": {"odd"}, "x!odd-bin": {"\x00\xff"}, "plain": {"too"}}
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		saw.sees(ctx)
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
			require.Equal(t, values, saw.md[key], key)
		}
		require.Equal(t, []string{"ähm"}, saw.md["user-agent"])
		seen = append(seen, saw.md)
		require.Equal(t, seen[0], saw.md, "the service sees that there was a hop")
	})
}
