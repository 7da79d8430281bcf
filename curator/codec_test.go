package curator

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// jsonCodec is what a user might register: of gRPC's first kind, and not protocol
// buffers on the wire.
type jsonCodec struct{}

func (jsonCodec) Name() string { return "eldest-json" }

func (jsonCodec) Marshal(v any) ([]byte, error) {
	if m, ok := v.(proto.Message); ok {
		return protojson.Marshal(m)
	}
	return json.Marshal(v)
}

func (jsonCodec) Unmarshal(data []byte, v any) error {
	if m, ok := v.(proto.Message); ok {
		return protojson.Unmarshal(data, m)
	}
	return json.Unmarshal(data, v)
}

func init() { encoding.RegisterCodec(jsonCodec{}) }

// Row 44: any codec passes, under its own name, for services that are forwarded and for
// those that each node answers itself.
func TestRequirement44Codecs(t *testing.T) {
	var subtypes []string
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		subtypes = append(subtypes, metadata.ValueFromIncomingContext(ctx, "content-type")...)
		return in, nil
	}, stream: echoes}
	everywhere(t, s, func(t *testing.T, n *node) {
		subtypes = nil
		as := grpc.CallContentSubtype("eldest-json")
		for range 2 {
			out, err := n.unary(etcdtest.Context(t), "hello", as)
			require.NoError(t, err)
			require.Equal(t, "hello", out)
		}
		_, err := n.unary(etcdtest.Context(t), "hello", grpc.CallContentSubtype("proto"))
		require.NoError(t, err)
		_, err = n.unary(etcdtest.Context(t), "hello")
		require.NoError(t, err)
		require.Equal(t, []string{"application/grpc+eldest-json", "application/grpc+eldest-json", "application/grpc+proto", "application/grpc"}, subtypes)
		stream := n.open(etcdtest.Context(t), bidiMethod, as)
		stream.send("hello")
		stream.expect("hello")
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.end())

		health, err := healthpb.NewHealthClient(n.conn).Check(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: healthAlive}, as)
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, health.GetStatus())
		leaders, err := curatorpb.NewCuratorClient(n.conn).CurrentLeader(etcdtest.Context(t), &curatorpb.CurrentLeaderRequest{}, as)
		require.NoError(t, err)
		told, err := leaders.Recv()
		require.NoError(t, err)
		require.Equal(t, "test", told.GetElection())
	})
}

// Compressed requests are understood and their answers compressed, as the caller asked;
// the service may choose as well.
func TestCompression(t *testing.T) {
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if string(in.GetValue()) == "choose" {
			if err := grpc.SetSendCompressor(ctx, gzip.Name); err != nil {
				return nil, err
			}
		}
		return in, nil
	}, stream: echoes}
	everywhere(t, s, func(t *testing.T, n *node) {
		big := strings.Repeat("eldest ", 10_000)
		for range 2 {
			out, err := n.unary(etcdtest.Context(t), big, grpc.UseCompressor(gzip.Name))
			require.NoError(t, err)
			require.Equal(t, big, out)
			_, err = n.unary(etcdtest.Context(t), "choose")
			require.NoError(t, err)
		}
		stream := n.open(etcdtest.Context(t), bidiMethod, grpc.UseCompressor(gzip.Name))
		stream.send(big)
		stream.expect(big)
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.end())
	})
}

// A unary method takes one message and no other number, wherever it is called.
func TestCardinality(t *testing.T) {
	everywhere(t, &script{unary: echo, stream: echoes}, func(t *testing.T, n *node) {
		for _, messages := range []int{0, 2, 1, 0, 2} { // a follower knows after the first success
			stream := n.open(etcdtest.Context(t), unaryMethod)
			for range messages {
				stream.send("x")
			}
			require.NoError(t, stream.CloseSend())
			err := stream.end()
			if messages == 1 {
				require.NoError(t, err)
			} else {
				require.Equal(t, codes.Internal, status.Code(err), "%d messages: %v", messages, err)
				require.ErrorContains(t, err, "from a caller that must send one")
			}
		}
		stream := n.open(etcdtest.Context(t), serverMethod)
		require.NoError(t, stream.CloseSend())
		require.Equal(t, codes.Internal, status.Code(stream.end()))
	})
}

// What cannot be decoded is the caller's fault, and what cannot be encoded the service's.
func TestNotDecoded(t *testing.T) {
	s := &script{unary: func(context.Context, *message) (*message, error) { return nil, nil }, stream: func(stream grpc.ServerStream) error {
		return stream.SendMsg("no message")
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		err := n.conn.Invoke(etcdtest.Context(t), unaryMethod, &rawMessage{0xff, 0xff}, &message{}, grpc.ForceCodec(rawMessages{}))
		require.Equal(t, codes.Internal, status.Code(err), "%v", err)
		stream := n.open(etcdtest.Context(t), bidiMethod)
		require.Equal(t, codes.Internal, status.Code(stream.end()))
		_, err = n.unary(etcdtest.Context(t), "") // a nil message is an empty one
		require.NoError(t, err)
	})
}

type rawMessage []byte

// rawMessages sends bytes as they are.
type rawMessages struct{}

func (rawMessages) Name() string { return "proto" }
func (rawMessages) Marshal(v any) ([]byte, error) {
	if m, ok := v.(*rawMessage); ok {
		return *m, nil
	}
	return proto.Marshal(v.(proto.Message))
}
func (rawMessages) Unmarshal(data []byte, v any) error {
	return proto.Unmarshal(data, v.(proto.Message))
}

// A handler may prepare its messages, which goes past our stream to the codec.
func TestPreparedMessages(t *testing.T) {
	s := &script{stream: func(stream grpc.ServerStream) error {
		var m grpc.PreparedMsg
		if err := m.Encode(stream, wrapperspb.Bytes([]byte("prepared"))); err != nil {
			return err
		}
		return stream.SendMsg(&m)
	}}
	everywhere(t, s, func(t *testing.T, n *node) {
		stream := n.open(etcdtest.Context(t), bidiMethod)
		stream.expect("prepared")
		require.NoError(t, stream.end())
	})
}
