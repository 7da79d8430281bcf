package rawframe

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Frame is one message as it is on the wire, uncompressed and not decoded. It holds one
// reference to the buffers, which belong to a pool of gRPC's: the receiver either sends the
// frame, which gives the reference away, or frees it. The zero value is an empty message.
//
// Invariant: Data is referenced exactly once by the frame, or nil.
type Frame struct{ Data mem.BufferSlice }

// Take gives the reference away; the frame is empty then.
func (f *Frame) Take() mem.BufferSlice {
	data := f.Data
	f.Data = nil
	return data
}

// Free gives the reference back. Freeing an empty frame does nothing, so it can follow
// a send that may have failed before or after gRPC took the buffers.
func (f *Frame) Free() { f.Take().Free() }

// Codec is an encoding.CodecV2 that moves frames instead of encoding messages. It is forced on
// a whole server and on each forwarded call, whatever content-subtype the call names.
type Codec struct{}

// Name is empty because it would become the content-subtype of a forwarded call that
// has none.
func (Codec) Name() string { return "" }

// Marshal takes the frame's reference; gRPC frees what it gets here after the last use,
// also when it keeps the message for a transparent retry.
//
// A message that is not a frame comes from a handler that prepares its messages
// (grpc.PreparedMsg), which gRPC encodes before any stream of the proxy sees them; those are
// protocol buffers.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*Frame); ok {
		return f.Take(), nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal frees what the frame holds and takes a reference of its own, because gRPC frees
// the one it has when this returns. The error says that v is not a *Frame.
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
