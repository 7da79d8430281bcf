package curator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// sketch is a call and how the handler answers it, as the fuzzer makes them up.
type sketch struct {
	stream, deadline bool
	key, value       string
	binary, payload  []byte
	code             codes.Code
	text             string
}

// account is all that can be seen of a call, by the caller and by the handler.
type account struct {
	code            codes.Code
	text            string
	details         int
	out             []byte
	header, trailer metadata.MD
	// The handler's side.
	handled  bool
	in       []byte
	seen     metadata.MD
	deadline bool // the caller's
}

// distant is a deadline that nobody meets, and that is known again where it arrives.
const distant = time.Hour

// recorder is the service: it keeps what it sees and answers as the sketch has it.
type recorder struct {
	mu     sync.Mutex
	sketch sketch
	seen   account
}

func (r *recorder) begin(s sketch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sketch, r.seen = s, account{}
}

// saw returns the handler's account.
func (r *recorder) saw() account {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *recorder) handle(ctx context.Context, in []byte, set func(header, trailer metadata.MD)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.handled, r.seen.in = true, in
	r.seen.seen, _ = metadata.FromIncomingContext(ctx)
	if at, ok := ctx.Deadline(); ok {
		r.seen.deadline = (time.Until(at) - distant).Abs() < distant/10
	}
	s := r.sketch
	set(metadata.MD{s.key: {s.value}, "h-bin": {string(s.binary)}}, metadata.MD{s.key: {s.value, ""}, "t-bin": {string(s.binary)}})
	if s.code == codes.OK {
		return nil
	}
	st, err := status.New(s.code, s.text).WithDetails(wrapperspb.Bytes(s.binary))
	if err != nil {
		return err
	}
	return st.Err()
}

func (r *recorder) script() *script {
	return &script{unary: func(ctx context.Context, in *message) (*message, error) {
		err := r.handle(ctx, in.GetValue(), func(header, trailer metadata.MD) {
			_, _ = grpc.SetHeader(ctx, header), grpc.SetTrailer(ctx, trailer) // which may be impossible ones
		})
		return in, err
	}, stream: func(stream grpc.ServerStream) error {
		in, err := received(stream)
		if err != nil {
			return err
		}
		if err := replies(stream, in); err != nil {
			return err
		}
		return r.handle(stream.Context(), []byte(in), func(_, trailer metadata.MD) { stream.SetTrailer(trailer) })
	}}
}

// call makes a sketched call, and tells what came of it.
func (r *recorder) call(t *testing.T, conn *grpc.ClientConn, s sketch) account {
	t.Helper()
	r.begin(s)
	ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{s.key: {s.value, s.value}, "c-bin": {string(s.binary)}})
	hanging := time.AfterFunc(etcdtest.Patience, func() { panic("the call hangs") }) // its context is part of what is tested
	defer hanging.Stop()
	if s.deadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, distant)
		defer cancel()
	}
	var a account
	var err error
	in, out := wrapperspb.Bytes(s.payload), &message{}
	if s.stream {
		var stream grpc.ClientStream
		if stream, err = conn.NewStream(ctx, anyStream, bidiMethod); err == nil {
			if err = errors.Join(stream.SendMsg(in), stream.CloseSend()); errors.Is(err, io.EOF) {
				err = nil // it is over already, and receiving says how
			}
			for err == nil {
				if err = stream.RecvMsg(out); err == nil {
					a.out = bytes.Clone(out.GetValue())
				}
			}
			a.header, _ = stream.Header()
			a.trailer = stream.Trailer()
			if err.Error() == "EOF" {
				err = nil
			}
		}
	} else {
		err = conn.Invoke(ctx, unaryMethod, in, out, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
		a.out = out.GetValue()
	}
	st := status.Convert(err)
	a.code, a.text, a.details = st.Code(), st.Message(), len(st.Details())
	h := r.saw()
	a.handled, a.in, a.seen, a.deadline = h.handled, h.in, h.seen, h.deadline
	return a
}

// FuzzForwarded: whatever a caller sends beside and in its messages, and whatever a
// handler answers: nobody can tell whether there was a node in between.
func FuzzForwarded(f *testing.F) {
	f.Add(false, true, "colour", "red", []byte("\x00\xff"), []byte("hello"), uint8(0), "")
	f.Add(true, false, "colour-bin", "\x00,\xff", []byte(""), []byte(""), uint8(0), "")
	f.Add(false, false, "colour", "red ", []byte{0xff}, []byte{0}, uint8(5), "not \x00 found é %\n")
	f.Add(true, true, "user-agent", "me", []byte("a,b"), bytes.Repeat([]byte("x"), 70_000), uint8(14), "can be retried")
	f.Add(false, true, "", "", []byte(nil), []byte(nil), uint8(1), "\xff")
	f.Add(false, true, "te", "trailers", []byte("x"), []byte("y"), uint8(4), "late")
	f.Add(true, true, "Upper", "case", []byte("x"), []byte("y"), uint8(8), "much")
	f.Add(false, false, "host", "elsewhere", []byte("x"), []byte("y"), uint8(16), "who")
	f.Add(true, false, "eldest-hop", "7", []byte("x"), []byte("y"), uint8(0), "")
	f.Add(false, false, "eldest-served", "7", []byte("x"), []byte("y"), uint8(12), "")
	f.Add(true, false, "eldest-read", "x", []byte("x"), bytes.Repeat([]byte("x"), 70_000), uint8(0), "") // refused while it sends
	f.Add(false, true, "big", strings.Repeat("v", 40_000), []byte("x"), []byte("y"), uint8(0), "")
	f.Add(false, true, "bigger", strings.Repeat("v", 70_000), []byte("x"), []byte("y"), uint8(0), "")

	r := &recorder{}
	leader, follower := pair(f, r.script())
	named := grpc.WithAuthority("called.test") // what is dialled differs
	direct, hopped := dialTo(f, leader.address, named), dialTo(f, follower.address, named)
	f.Cleanup(func() { _, _ = direct.Close(), hopped.Close() })

	f.Fuzz(func(t *testing.T, stream, deadline bool, key, value string, binary, payload []byte, code uint8, text string) {
		if len(payload) > 1<<20 {
			return
		}
		s := sketch{stream, deadline, strings.ToLower(key), value, binary, payload, codes.Code(code % 20), text}
		one := r.call(t, direct, s)
		require.LessOrEqual(t, uint32(one.code), uint32(19))
		other := r.call(t, hopped, s)
		switch {
		case strings.HasPrefix(s.key, "eldest-"): // the curators' own
			require.Contains(t, []codes.Code{one.code, codes.InvalidArgument, codes.Unavailable}, other.code)
			require.NotContains(t, other.trailer, servedKey)
			return
		case strings.HasPrefix(s.key, "grpc-"): // gRPC's own
			return
		}
		if !other.handled && one.handled {
			// Only the hop's own metadata can be too much for the leader.
			require.Equal(t, codes.Internal, other.code, "%v", other.text)
			require.Greater(t, 2*(len(s.key)+len(value))+len(binary)*4/3, DefaultMaxMetadata-1024)
			return
		}
		require.Equal(t, one, other)
		require.Equal(t, one.handled && deadline, one.deadline)
		if one.handled {
			require.Equal(t, payload, append(payload[:0:0], one.in...))
		}
	})
}
