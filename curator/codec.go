package curator

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// subtype returns the content-subtype of an incoming call: "json" for "application/grpc+json", or
// empty if the call names none, which means protocol buffers.
func subtype(ctx context.Context) string {
	values := metadata.ValueFromIncomingContext(ctx, "content-type")
	if len(values) == 0 {
		return ""
	}
	sub := strings.TrimPrefix(strings.ToLower(values[0]), "application/grpc")
	if sub == "" {
		return ""
	}
	return sub[1:] // gRPC accepts only '+' and ';' as separators
}

// codecOf returns the codec of a call, as gRPC would have chosen it: the one that is
// registered under the content-subtype, else that of protocol buffers.
func codecOf(ctx context.Context) codec {
	name := subtype(ctx)
	if name == "" {
		name = proto.Name
	}
	if v1 := encoding.GetCodec(name); v1 != nil {
		return plain{v1}
	}
	if v2 := encoding.GetCodecV2(name); v2 != nil {
		return v2
	}
	return encoding.GetCodecV2(proto.Name)
}

// codec is the part of encoding.CodecV2 that is used.
type codec interface {
	Marshal(v any) (mem.BufferSlice, error)
	Unmarshal(data mem.BufferSlice, v any) error
}

// plain adapts a codec for byte slices.
type plain struct{ encoding.Codec }

func (p plain) Marshal(v any) (mem.BufferSlice, error) {
	data, err := p.Codec.Marshal(v)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (p plain) Unmarshal(data mem.BufferSlice, v any) error {
	return p.Codec.Unmarshal(data.Materialize(), v)
}

// decoding is a stream of frames for a handler that receives messages.
type decoding struct {
	grpc.ServerStream
	codec codec
	// many is set if the caller may send any number of messages. Otherwise it sends exactly one, as
	// in gRPC: the handler receives it only when the caller has half-closed.
	many bool
	// first is set when the first message was received.
	first bool
}

// RecvMsg blocks until the next message arrives; see grpc.ServerStream.
func (d *decoding) RecvMsg(m any) error {
	var f rawframe.Frame
	defer f.Free()
	receive := d.ServerStream.RecvMsg
	if !d.many && !d.first {
		receive = func(any) error { return only(d.ServerStream, &f) }
	}
	if err := receive(&f); err != nil {
		return err
	}
	d.first = true
	return decode(d.codec, &f, m)
}

// only receives the message of a caller that must send exactly one; it blocks until the caller has
// half-closed.
func only(stream grpc.ServerStream, f *rawframe.Frame) error {
	switch err := stream.RecvMsg(f); {
	case err == nil:
	case errors.Is(err, io.EOF):
		return status.Error(codes.Internal, "eldest: no message was received from a caller that must send one")
	default:
		return err
	}
	var second rawframe.Frame
	defer second.Free()
	switch err := stream.RecvMsg(&second); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return status.Error(codes.Internal, "eldest: a second message was received from a caller that must send one")
	default:
		return err
	}
}

// SendMsg encodes a message and sends it; see grpc.ServerStream.
func (d *decoding) SendMsg(m any) error {
	if _, ok := m.(*grpc.PreparedMsg); ok {
		return d.ServerStream.SendMsg(m)
	}
	f, err := encode(d.codec, m)
	if err != nil {
		return err
	}
	defer f.Free()
	return d.ServerStream.SendMsg(f)
}

// encode makes a frame of a message; a nil message is an empty frame, as in gRPC.
func encode(c codec, m any) (*rawframe.Frame, error) {
	if m == nil {
		return &rawframe.Frame{}, nil
	}
	data, err := c.Marshal(m)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "the message cannot be encoded: %v", err)
	}
	return &rawframe.Frame{Data: data}, nil
}

// decode makes a message of a frame; the caller must still free the frame.
func decode(c codec, f *rawframe.Frame, m any) error {
	if err := c.Unmarshal(f.Data, m); err != nil {
		return status.Errorf(codes.Internal, "the message cannot be decoded: %v", err)
	}
	return nil
}
