package curator

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// frame is one message as it stood on the wire, uncompressed and not decoded. It holds
// one reference to the buffers, which belong to a pool of gRPC's: whoever has received
// into a frame either sends it on, which gives the reference away, or frees it.
//
// Invariant: data is referenced exactly once by the frame, or nil.
type frame struct{ data mem.BufferSlice }

// take gives the reference away; the frame is empty then.
func (f *frame) take() mem.BufferSlice {
	data := f.data
	f.data = nil
	return data
}

// free gives the reference back. Freeing an empty frame does nothing, so it can follow
// a send that may or may not have come as far as taking the buffers.
func (f *frame) free() { f.take().Free() }

// rawCodec moves frames instead of encoding messages. It is forced on the whole front
// and on each forwarded call, whatever content-subtype the call names: what is in the
// frame is the business of the two ends.
type rawCodec struct{}

// Name is empty because it would become the content-subtype of a forwarded call that
// has none.
func (rawCodec) Name() string { return "" }

// Marshal takes the frame's reference; gRPC frees what it gets here after the last use,
// also when it keeps the message for a transparent retry.
//
// A message that is not a frame comes from a handler that prepares its messages
// (grpc.PreparedMsg), past our stream; those are protocol buffers.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return f.take(), nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal takes a reference of its own, because gRPC frees the one it has when this
// returns.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a %T was received past the curator's stream", v)
	}
	f.free()
	data.Ref()
	f.data = data
	return nil
}
