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
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// everywhere runs a test at the leader and at the follower: no caller can tell.
func everywhere(t *testing.T, s *script, test func(t *testing.T, n *node), change ...func(*Config)) {
	t.Helper()
	leader, follower := pair(t, s, change...)
	for _, n := range []*node{leader, follower} {
		t.Run(n.cfg.Elector.NodeID, func(t *testing.T) {
			n.t = t
			test(t, n)
		})
	}
	require.Zero(t, follower.calls.Load(), "the follower has the service, too")
}

// Row 43: any node answers like the leader. Row 44: no node but the leader knows the
// service.
func TestRequirement43AnyNodeAnswers(t *testing.T) {
	everywhere(t, &script{unary: echo}, func(t *testing.T, n *node) {
		for range 10 {
			out, err := n.unary(etcdtest.Context(t), "hello")
			require.NoError(t, err)
			require.Equal(t, "hello", out)
		}
		var none message
		err := n.conn.Invoke(etcdtest.Context(t), "/test.Script/Missing", wrapperspb.Bytes(nil), &none)
		require.Equal(t, codes.Unimplemented, status.Code(err))
		require.ErrorContains(t, err, "unknown method Missing for service test.Script")
		err = n.conn.Invoke(etcdtest.Context(t), "/test.Nothing/Unary", wrapperspb.Bytes(nil), &none)
		require.Equal(t, codes.Unimplemented, status.Code(err))
	})
}

// A follower is told by the leader which methods are unary, and takes nothing else for
// one: it does not know the service.
func TestUnaryIsTold(t *testing.T) {
	_, follower := pair(t, &script{unary: echo, stream: echoes})
	unary := &follower.front.router.Now().peer.unary
	require.False(t, unary.knows(unaryMethod))
	for _, method := range []string{bidiMethod, serverMethod, clientMethod, unaryMethod, "/test.Script/Missing"} {
		stream := follower.open(etcdtest.Context(t), method)
		_ = stream.SendMsg(wrapperspb.Bytes([]byte("hello"))) // however it is called
		_ = stream.CloseSend()
		_ = stream.end()
		require.Equal(t, method == unaryMethod, unary.knows(method), method)
	}
}

// metadata of every shape: more than one value, binary, empty.
func colours() metadata.MD {
	return metadata.MD{
		"colour":     {"red", "green"},
		"colour-bin": {"\x00\xff", "", "\x01,\x02"},
		"empty":      {""},
	}
}

func requireColours(t testing.TB, got metadata.MD, where string) {
	t.Helper()
	for k, v := range colours() {
		require.Equal(t, v, got[k], "%s: %s", where, k)
	}
	for k := range got {
		require.False(t, strings.HasPrefix(k, "eldest-"), "%s: %s is the curators' own", where, k)
	}
	// gRPC shows its own encoding of the details to the caller, too.
	require.LessOrEqual(t, len(got["grpc-status-details-bin"]), 1, where)
}

// witness is what a handler saw, for comparison between nodes.
type witness struct {
	md       metadata.MD
	method   string
	deadline bool
}

func (w *witness) sees(ctx context.Context) {
	w.md, _ = metadata.FromIncomingContext(ctx)
	w.method, _ = grpc.Method(ctx)
	_, w.deadline = ctx.Deadline()
}

// strange is a status with details, which must arrive exactly once.
func strange(t testing.TB) *status.Status {
	t.Helper()
	st, err := status.New(codes.Code(42), "strange é \n %").WithDetails(durationpb.New(7), wrapperspb.String("detail"))
	require.NoError(t, err)
	return st
}

func requireStrange(t testing.TB, err error) {
	t.Helper()
	st := status.Convert(err)
	require.Equal(t, codes.Code(42), st.Code())
	require.Equal(t, "strange é \n %", st.Message())
	require.Len(t, st.Details(), 2)
	require.Equal(t, "detail", st.Details()[1].(*wrapperspb.StringValue).GetValue())
}

// Row 44: what is beside the messages, of unary calls: header, trailer, status with
// details, deadline, and what the service sees of the caller.
func TestRequirement44UnaryMetadataAndStatus(t *testing.T) {
	var saw witness
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		saw.sees(ctx)
		if err := grpc.SetHeader(ctx, colours()); err != nil {
			return nil, err
		}
		if err := grpc.SetTrailer(ctx, colours()); err != nil {
			return nil, err
		}
		if string(in.GetValue()) == "fail" {
			return nil, strange(t).Err()
		}
		return in, nil
	}}
	seen := make(map[string]metadata.MD)
	everywhere(t, s, func(t *testing.T, n *node) {
		ctx := metadata.NewOutgoingContext(etcdtest.Context(t), colours())
		for _, in := range []string{"", "fail"} {
			var header, trailer metadata.MD
			_, err := n.unary(ctx, in, grpc.Header(&header), grpc.Trailer(&trailer))
			if in == "" {
				require.NoError(t, err)
			} else {
				requireStrange(t, err)
			}
			requireColours(t, header, "header")
			requireColours(t, trailer, "trailer")
			requireColours(t, saw.md, "the service's")
			require.Equal(t, unaryMethod, saw.method)
			require.True(t, saw.deadline)
		}
		saw.md.Delete(":authority") // two servers
		seen[n.cfg.Elector.NodeID] = saw.md
	})
	require.Equal(t, seen["leader"], seen["follower"], "the service sees that there was a hop")
}

// Row 44: a status without a header stays one: the follower must not make one up.
func TestRequirement44TrailersOnly(t *testing.T) {
	s := &script{unary: func(context.Context, *message) (*message, error) { return nil, strange(t).Err() }}
	everywhere(t, s, func(t *testing.T, n *node) {
		stream := n.open(etcdtest.Context(t), unaryMethod)
		stream.send("")
		require.NoError(t, stream.CloseSend())
		requireStrange(t, stream.end())
		header, err := stream.Header()
		require.NoError(t, err)
		require.Empty(t, header)
		require.Len(t, stream.Trailer()["grpc-status-details-bin"], 1)
	})
}

// Row 44: all three kinds of streams, with what is beside the messages; the handler
// decides when its header goes and when it has heard enough.
func TestRequirement44Streams(t *testing.T) {
	var saw witness
	s := &script{stream: func(stream grpc.ServerStream) error {
		saw.sees(stream.Context())
		if err := stream.SetHeader(colours()); err != nil {
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
			if saw.method != clientMethod {
				if err := replies(stream, in); err != nil {
					return err
				}
			}
			if saw.method == serverMethod {
				break
			}
		}
		switch saw.method {
		case clientMethod:
			return replies(stream, strings.Join(all, ""))
		case serverMethod:
			for range 99 {
				if err := replies(stream, all[0]); err != nil {
					return err
				}
			}
		}
		return strange(t).Err()
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		ctx := metadata.NewOutgoingContext(etcdtest.Context(t), colours())
		for _, method := range []string{clientMethod, serverMethod, bidiMethod} {
			stream := n.open(ctx, method)
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
				requireStrange(t, stream.end())
			}
			header, err := stream.Header()
			require.NoError(t, err)
			requireColours(t, header, method+" header")
			requireColours(t, stream.Trailer(), method+" trailer")
			requireColours(t, saw.md, method+" the service's")
			require.Equal(t, method, saw.method)
		}
	})
}

// Row 44: the header arrives when the service sends it, before any message in either
// direction.
func TestRequirement44HeaderAtOnce(t *testing.T) {
	go_ := make(chan struct{}, 1)
	s := &script{stream: func(stream grpc.ServerStream) error {
		if err := stream.SendHeader(colours()); err != nil {
			return err
		}
		<-go_
		return nil
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		stream := n.open(etcdtest.Context(t), bidiMethod)
		header, err := stream.Header()
		require.NoError(t, err)
		requireColours(t, header, "header")
		go_ <- struct{}{}
		require.NoError(t, stream.end())
	})
}

// Row 44: a half-close is passed on, and the service may go on talking after it; the
// service may have heard enough before it.
func TestRequirement44HalfClose(t *testing.T) {
	s := &script{stream: func(stream grpc.ServerStream) error {
		in, err := received(stream)
		if err != nil {
			return err
		}
		if in == "enough" {
			return strange(t).Err()
		}
		if _, err := received(stream); !errors.Is(err, io.EOF) {
			return status.Errorf(codes.Internal, "no half-close but %v", err)
		}
		return replies(stream, "after")
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		stream := n.open(etcdtest.Context(t), bidiMethod)
		stream.send("")
		require.NoError(t, stream.CloseSend())
		stream.expect("after")
		require.NoError(t, stream.end())

		stream = n.open(etcdtest.Context(t), bidiMethod)
		stream.send("enough")
		requireStrange(t, stream.end())
	})
}

// Row 44: the caller's end is the service's: a cancel, and a deadline.
func TestRequirement44CancelAndDeadline(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	s := &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		code := make(chan codes.Code, 1)
		go func() {
			_, err := n.unary(ctx, "")
			code <- status.Code(err)
		}()
		etcdtest.Take(t, began, "the handler")
		cancel()
		require.Equal(t, codes.Canceled, etcdtest.Take(t, code, "the caller"))
		require.ErrorIs(t, etcdtest.Take(t, ended, "the handler's end"), context.Canceled)

		short, cancel := context.WithTimeout(etcdtest.Context(t), 2*time.Second) // the handler begins before that
		defer cancel()
		_, err := n.unary(short, "")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
		etcdtest.Take(t, began, "the handler")
		require.Error(t, etcdtest.Take(t, ended, "the handler's end"))
	})
}

// What the service sees of a local call is the caller, and of a forwarded one the node
// that forwarded it.
func TestPeerOfACall(t *testing.T) {
	var from string
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if p, ok := grpcpeer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		return in, nil
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		from = ""
		_, err := n.unary(etcdtest.Context(t), "")
		require.NoError(t, err)
		require.Contains(t, from, "127.0.0.1:")
	})
}

// Row 58: what HTTP/2 lets through and gRPC's own client does not send, texts with other
// characters and odd names, is the service's at each node; and so is what the service answers.
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
	seen := make(map[string]metadata.MD)
	everywhere(t, s, func(t *testing.T, n *node) {
		for range 2 { // before it is known to be unary, and after
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
			seen[n.cfg.Elector.NodeID] = saw.md
		}
	})
	require.Equal(t, seen["leader"], seen["follower"], "the service sees that there was a hop")
}

// Row 58: pairs that are none are no curator's.
func TestRow58OddMetadataComesInPairs(t *testing.T) {
	n := newNode(t, "n")
	n.leads(7, &script{unary: echo})
	_, err := n.unary(metadata.AppendToOutgoingContext(claiming(etcdtest.Context(t), "x", "7"), oddKey, "key"), "")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Zero(t, n.calls.Load())
	_, err = n.unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), oddKey, "key"), "")
	require.NoError(t, err, "a caller's, without a hop, is nobody's")
}
