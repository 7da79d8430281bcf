package rawframe

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Frame is one message as it is on the wire, uncompressed and not decoded. It holds one reference
// to the buffers, which belong to a pool of gRPC: the receiver either sends the frame, which passes
// the reference on, or frees it. The zero value is an empty message.
//
// Invariant: the frame has exactly one reference to Data, or Data is nil.
type Frame struct{ Data mem.BufferSlice }

// Take returns the reference and empties the frame.
func (f *Frame) Take() mem.BufferSlice {
	data := f.Data
	f.Data = nil
	return data
}

// Free releases the reference. On an empty frame it does nothing, so it can follow a send that may
// have failed before or after gRPC took the buffers.
func (f *Frame) Free() { f.Take().Free() }

// Codec is an encoding.CodecV2 that moves frames instead of encoding messages. It is forced on
// a whole server and on each forwarded call, whatever content-subtype the call names.
type Codec struct{}

// Name is empty because it would become the content-subtype of a forwarded call that
// has none.
func (Codec) Name() string { return "" }

// Marshal takes the frame's reference; gRPC frees the buffers after their last use, also when it
// keeps the message for a transparent retry.
//
// A message that is not a frame comes from a handler that prepares its messages (grpc.PreparedMsg),
// which gRPC encodes before any stream of the proxy receives them. Such messages are protocol
// buffers.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*Frame); ok {
		return f.Take(), nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal frees the old buffers of the frame and takes its own reference, because gRPC releases
// its reference when Unmarshal returns. It fails if v is not a *Frame.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("rawframe: a message was received into a %T, which is not a frame", v)
	}
	f.Free()
	data.Ref()
	f.Data = data
	return nil
}
