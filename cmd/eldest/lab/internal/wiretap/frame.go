package wiretap

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frame is one message as it stood on the wire, uncompressed.
type frame struct{ data []byte }

// rawCodec moves frames instead of encoding messages, on both sides.
type rawCodec struct{}

// Name is empty: it would become the content-subtype of the calls to etcd.
func (rawCodec) Name() string { return "" }

// Marshal hands the bytes out as they are; nobody changes them.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("wiretap: a %T is no frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

// Unmarshal copies: gRPC takes its buffers back.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("wiretap: a %T is no frame", v)
	}
	f.data = data.Materialize()
	return nil
}
