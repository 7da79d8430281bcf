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
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// jsonCodec is a codec that a user might register: it is an encoding.Codec (version 1), and does
// not use protocol buffers on the wire.
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

// slowCodec is jsonCodec, but decodes each message only when the test allows it.
type slowCodec struct{ jsonCodec }

// decodes has, for each message that slowCodec decodes, the channel that it waits for.
var decodes = make(chan (<-chan struct{}))

func (slowCodec) Name() string { return "eldest-slow" }

func (c slowCodec) Unmarshal(data []byte, v any) error {
	<-<-decodes
	return c.jsonCodec.Unmarshal(data, v)
}

func init() {
	encoding.RegisterCodec(jsonCodec{})
	encoding.RegisterCodec(slowCodec{})
}

// Row 44: any codec can be used, under its own name, for services that are forwarded and for those
// that each node answers itself.
func TestRequirement44Codecs(t *testing.T) {
	var subtypes []string
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		subtypes = append(subtypes, metadata.ValueFromIncomingContext(ctx, "content-type")...)
		return in, nil
	}, stream: echoes}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		subtypes = nil
		as := grpc.CallContentSubtype("eldest-json")
		n.answers("hello", as)
		n.answers("hello", grpc.CallContentSubtype("proto"))
		n.answers("hello")
		require.Equal(t, []string{"application/grpc+eldest-json", "application/grpc+proto", "application/grpc"}, subtypes)
		stream := n.open(bidiMethod, as)
		stream.send("hello")
		stream.expect("hello")
		stream.closes()

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

// Compressed requests are decompressed, and their answers are compressed as the caller requested.
// The service may choose the compression as well.
func TestCompression(t *testing.T) {
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if string(in.GetValue()) == "choose" {
			return in, grpc.SetSendCompressor(ctx, gzip.Name)
		}
		return in, nil
	}, stream: echoes}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		big := strings.Repeat("eldest ", 10_000)
		n.answers(big, grpc.UseCompressor(gzip.Name))
		n.answers("choose")
		stream := n.open(bidiMethod, grpc.UseCompressor(gzip.Name))
		stream.send(big)
		stream.expect(big)
		stream.closes()
	})
}

// A unary method accepts exactly one message, at every node.
func TestCardinality(t *testing.T) {
	everywhere(t, echoing, func(t *testing.T, n, _ *node) {
		for _, messages := range []int{0, 2, 1} {
			stream := n.open(unaryMethod)
			for range messages {
				stream.send("x")
			}
			require.NoError(t, stream.CloseSend())
			if err := stream.end(); messages == 1 {
				require.NoError(t, err)
			} else {
				requireCode(t, codes.Internal, err, "from a caller that must send one")
			}
		}
		stream := n.open(serverMethod)
		require.NoError(t, stream.CloseSend())
		requireCode(t, codes.Internal, stream.end())
	})
}

// If a message cannot be decoded, that is the caller's fault; if one cannot be encoded, the
// service's. A handler may prepare its messages; they bypass the curator's stream and go to the
// codec.
func TestMessagesThatAreNotDecoded(t *testing.T) {
	s := &script{unary: func(context.Context, *message) (*message, error) { return nil, nil }, stream: func(stream grpc.ServerStream) error {
		var prepared grpc.PreparedMsg
		if err := prepared.Encode(stream, wrapperspb.Bytes([]byte("prepared"))); err != nil {
			return err
		}
		if err := stream.SendMsg(&prepared); err != nil {
			return err
		}
		return stream.SendMsg("no message")
	}}
	client := plainHTTP(t)
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		_, code := post(t, client, n.address, unaryMethod, "", onWire(0, []byte{0xff, 0xff}), 0)
		require.Equal(t, "13", code) // INTERNAL
		stream := n.open(bidiMethod)
		stream.expect("prepared")
		requireCode(t, codes.Internal, stream.end())
		n.answers("") // a nil message is an empty one
	})
}
