package rawframe_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/rawframe"
)

var codec encoding.CodecV2 = rawframe.Codec{}

// pool counts the buffers in use. gRPC panics if a buffer is freed twice.
type pool struct{ out int }

func (p *pool) Get(n int) *[]byte {
	p.out++
	b := make([]byte, n)
	return &b
}

func (p *pool) Put(*[]byte) { p.out-- }

// arrive makes a frame receive a message, as gRPC does.
func (p *pool) arrive(t *testing.T, f any) error {
	t.Helper()
	data := mem.BufferSlice{mem.NewBuffer(p.Get(4096), p)} // smaller ones are not pooled
	defer data.Free()
	return codec.Unmarshal(data, f)
}

// A frame holds the one message that was received last, until it is sent or freed.
func TestBuffersAreGivenBackOnce(t *testing.T) {
	var p pool
	var f rawframe.Frame
	require.NoError(t, p.arrive(t, &f))
	require.NoError(t, p.arrive(t, &f))
	require.Equal(t, 1, p.out, "the first message is freed when the second is received")
	require.Equal(t, 4096, f.Data.Len())

	sent, err := codec.Marshal(&f)
	require.NoError(t, err)
	require.Equal(t, 4096, sent.Len())
	f.Free()
	require.Equal(t, 1, p.out, "what is sent is gRPC's to free")
	sent.Free()
	require.Zero(t, p.out)

	require.NoError(t, p.arrive(t, &f))
	f.Free()
	f.Free()
	require.Zero(t, p.out)
}

// The empty frame is the empty message.
func TestEmptyFrame(t *testing.T) {
	sent, err := codec.Marshal(&rawframe.Frame{})
	require.NoError(t, err)
	require.Zero(t, sent.Len())
}

// Messages that a handler prepares are protocol buffers; only frames are received.
func TestOtherMessages(t *testing.T) {
	m := wrapperspb.String("hello")
	sent, err := codec.Marshal(m)
	require.NoError(t, err)
	defer sent.Free()
	want, err := proto.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, want, sent.Materialize())

	var p pool
	require.ErrorContains(t, p.arrive(t, m), "not a frame")
	require.Zero(t, p.out)
	require.Empty(t, codec.Name(), "a name would be the content-subtype of a call that has none")
}
