package curator

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// fuzzCall is a call, and how the handler answers it, as the fuzzer generates them.
type fuzzCall struct {
	stream, deadline bool
	key, value       string
	binary, payload  []byte
	code             codes.Code
	text             string
}

// callView is everything that the caller and the handler can see of a call.
type callView struct {
	code            codes.Code
	text            string
	details         string
	out             []byte
	header, trailer metadata.MD
	handler         handlerView
}

// handlerView is the handler's side.
type handlerView struct {
	called   bool
	in       []byte
	method   string
	md       metadata.MD
	deadline bool // the caller's
}

// distant is a deadline that does not pass, and that the handler can recognise.
const distant = time.Hour

// recorder is the service: it records what it sees, and answers as the fuzzCall defines.
type recorder struct {
	mu       sync.Mutex
	fuzzCall fuzzCall
	seen     handlerView
}

func (r *recorder) begin(s fuzzCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fuzzCall, r.seen = s, handlerView{}
}

func (r *recorder) saw() handlerView {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func (r *recorder) handle(ctx context.Context, in []byte, set func(header, trailer metadata.MD)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = handlerView{called: true, in: in}
	r.seen.md, _ = metadata.FromIncomingContext(ctx)
	r.seen.method, _ = grpc.Method(ctx)
	if at, ok := ctx.Deadline(); ok {
		r.seen.deadline = (time.Until(at) - distant).Abs() < distant/10
	}
	s := r.fuzzCall
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
			_, _ = grpc.SetHeader(ctx, header), grpc.SetTrailer(ctx, trailer) // which may be invalid
		})
		return in, err
	}, stream: func(stream grpc.ServerStream) error {
		in, err := received(stream)
		if err == nil {
			err = replies(stream, in)
		}
		if err != nil {
			return err
		}
		return r.handle(stream.Context(), []byte(in), func(_, trailer metadata.MD) { stream.SetTrailer(trailer) })
	}}
}

// call makes the call that a fuzzCall describes, and returns what the caller and the handler saw.
func (r *recorder) call(t *testing.T, conn *grpc.ClientConn, s fuzzCall) callView {
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
	var a callView
	var err error
	in, out := wrapperspb.Bytes(s.payload), &message{}
	if s.stream {
		var stream grpc.ClientStream
		if stream, err = conn.NewStream(ctx, anyStream, bidiMethod); err == nil {
			if err = errors.Join(stream.SendMsg(in), stream.CloseSend()); errors.Is(err, io.EOF) {
				err = nil // the stream has ended already, and RecvMsg returns the status
			}
			for err == nil {
				if err = stream.RecvMsg(out); err == nil {
					a.out = bytes.Clone(out.GetValue())
				}
			}
			a.header, _ = stream.Header()
			a.trailer = stream.Trailer()
			if errors.Is(err, io.EOF) {
				err = nil
			}
		}
	} else {
		err = conn.Invoke(ctx, unaryMethod, in, out, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
		a.out = out.GetValue()
	}
	st := status.Convert(err)
	a.code, a.text, a.details, a.handler = st.Code(), st.Message(), fmt.Sprint(st.Details()), r.saw()
	return a
}

// FuzzForwarded: for all metadata and messages of a caller, and all answers of a handler, neither
// can detect whether there was a node in between (row 44). A status without a header stays one.
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
	same := grpc.WithAuthority("called.test") // the dialled addresses differ
	direct, hopped := dialTo(f, leader.address, same), dialTo(f, follower.address, same)

	f.Fuzz(func(t *testing.T, stream, deadline bool, key, value string, binary, payload []byte, code uint8, text string) {
		if len(payload) > 1<<20 {
			return
		}
		s := fuzzCall{stream, deadline, strings.ToLower(key), value, binary, payload, codes.Code(code % 20), text}
		one := r.call(t, direct, s)
		require.LessOrEqual(t, uint32(one.code), uint32(19))
		other := r.call(t, hopped, s)
		switch {
		case strings.HasPrefix(s.key, "eldest-"): // reserved for curators
			require.Contains(t, []codes.Code{one.code, codes.InvalidArgument, codes.Unavailable}, other.code)
			require.NotContains(t, other.trailer, servedKey)
			return
		case strings.HasPrefix(s.key, "grpc-"): // reserved for gRPC
			return
		case one.handler.called && !other.handler.called:
			// Only with the hop's own metadata it can be too much for the leader.
			require.Equal(t, codes.Internal, other.code, "%v", other.text)
			require.Greater(t, 2*(len(s.key)+len(value))+len(binary)*4/3, DefaultMaxMetadata-1024)
			return
		}
		require.Equal(t, one, other)
		require.Equal(t, one.handler.called && deadline, one.handler.deadline)
		if one.handler.called {
			require.Equal(t, payload, append(payload[:0:0], one.handler.in...))
		}
	})
}

// FuzzHop: metadata of a hop was written by a curator, or is refused; no caller's metadata becomes
// a hop on the way to the leader; and the service receives there exactly what the caller sent.
func FuzzHop(f *testing.F) {
	for _, seed := range []struct{ token, from, key, value string }{
		{"7", "node", "red", "green"},
		{"-1", "%zz", "", "\x00"},
		{"+7", "n", "a", "b"}, // a number, but not as a curator writes it
		{"007", "n", "a", "b"},
		{" 7", "n", "a", "b"},
		{"0x7", "n", "a", "b"},
		{"７", "n", "a", "b"},
		{"9223372036854775808", "n\xff \n", "a", "b"},
		{"7", "a/b?c#d%2F", "eldest-hop", "8"}, // a caller that claims a hop
		{"7", "n", "eldest-from", "root"},
		{"7", "n", "eldest-user-agent", "somebody else"},
		{"7", "n", "eldest-authority", "somewhere else"},
		{"7", "n", "eldest-served", "7"},
		{"7", "n", "eldest-caller-bin", "\x30\x00"},
		{"7", "n", ":authority", "there"},
		{"7", "n", "user-agent", "me"},
		{"7", "n", "content-type", "application/grpc+json"},
		{"7", "n", "text", "é\t"},
		{"7", "n", "x!odd", "plain"},
		{"7", "n", "x!odd-bin", "\x00"},
		{"7", "n", "eldest-odd-bin", "eldest-hop"},
		{"7", "", "data-bin", "\x00\xff,"},
		{strings.Repeat("9", 1000), strings.Repeat("%", 1000), "k", strings.Repeat("v", 1000)},
	} {
		f.Add(seed.token, seed.from, seed.key, seed.value)
	}
	f.Fuzz(func(t *testing.T, token, from, key, value string) {
		h, err := hopOf(with(t, metadata.MD{hopKey: {token}, fromKey: {from}}))
		if err != nil {
			requireCode(t, codes.InvalidArgument, err)
			require.Zero(t, h, "half a hop")
			for _, r := range err.Error() {
				require.True(t, strconv.IsPrint(r), "%q in %q cannot be shown on a terminal", r, err)
			}
			h = hop{token: 7, from: from}
		} else {
			require.Positive(t, int64(h.token))
			require.Equal(t, strconv.FormatInt(int64(h.token), 10), token, "no curator writes it like that")
		}
		_, err = hopOf(with(t, metadata.MD{hopKey: {token, token}}))
		requireCode(t, codes.InvalidArgument, err)

		// The caller's metadata, on the way to the leader; gRPC has no upper case.
		key = strings.ToLower(key)
		caller := metadata.MD{":authority": {"called"}}
		caller[key] = append(caller[key], value, value)
		sent := toLeader(with(t, caller), hop{token: h.token, from: from})
		for key, values := range sent { // otherwise gRPC's client refuses the call
			require.True(t, plainKey(key) || key[0] == ':', "%q", key)
			require.True(t, strings.HasSuffix(key, "-bin") || !slices.ContainsFunc(values, unprintable), "%q: %q", key, values)
		}
		// gRPC replaces the caller's values of gRPC's own keys.
		sent["content-type"], sent["user-agent"], sent[":authority"] = []string{"application/grpc"}, []string{"the hop's"}, []string{"leader:1"}
		got, err := hopOf(with(t, sent))
		require.NoError(t, err)
		require.Equal(t, hop{token: h.token, from: from}, got, "the caller has a say in the hop")
		require.Nil(t, passedCaller(with(t, sent)), "the caller has a say in who it is")
		seen, _ := metadata.FromIncomingContext(fromCaller(with(t, sent), got))
		delete(seen, "content-type")
		for _, ours := range append([]string{"content-type", "grpc-accept-encoding", servedKey}, hopKeys...) {
			delete(caller, ours)
		}
		require.Equal(t, caller, seen)

		// What a leader's trailer contains about the hop is not passed on.
		trailer := metadata.Join(h.served(), metadata.Pairs(unaryKey, "", "content-type", "application/grpc", "k", value))
		require.Equal(t, metadata.MD{"k": {value}}, toCaller(trailer))
	})
}

func with(t *testing.T, md metadata.MD) context.Context {
	return metadata.NewIncomingContext(t.Context(), md.Copy())
}

// onWire is one gRPC message as it is in the body of a request.
func onWire(compressed byte, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(payload))), payload...)
}

func wrapped(text string) []byte {
	data, err := proto.Marshal(wrapperspb.Bytes([]byte(text)))
	if err != nil {
		panic(err)
	}
	return data
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // to a Buffer
	_ = w.Close()
	return out.Bytes()
}

// plainHTTP is an HTTP/2 client without gRPC, so that it can send what no gRPC client would.
func plainHTTP(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: etcdtest.Patience}
}

// post sends a body to a method, and returns gRPC's status of the answer.
func post(t *testing.T, client *http.Client, address, method, encoding string, body []byte, round int64) (httpCode int, grpcCode string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+method, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "Round": {fmt.Sprint(round)}}
	if encoding != "" {
		req.Header["Grpc-Encoding"] = []string{encoding}
	}
	resp, err := client.Do(req)
	if err != nil {
		// The transport has refused to send the request, or the server has ended it without an
		// answer.
		require.NotContains(t, err.Error(), "Client.Timeout", "the call hangs")
		return 0, "no answer"
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	code := resp.Header.Get("Grpc-Status") // there is no body
	if code == "" {
		code = resp.Trailer.Get("Grpc-Status")
	}
	if code == "" {
		require.Error(t, err, "an answer without a status")
	}
	return resp.StatusCode, code
}

// FuzzWire: frames of any kind, truncated, too long, compressed or not, and any number of them. The
// follower and the leader answer alike, no handler is called twice, and both continue to answer.
func FuzzWire(f *testing.F) {
	hello := onWire(0, wrapped("hello"))
	for _, seed := range [][]byte{
		nil, hello, hello[:3], hello[:7], append(bytes.Clone(hello), hello...), append(bytes.Clone(hello), 0),
		onWire(0, nil), onWire(1, wrapped("hello")), onWire(1, zipped(wrapped("hello"))), onWire(2, wrapped("hello")),
		onWire(0, []byte{0xff, 0xff}), {0, 0xff, 0xff, 0xff, 0xff}, {0, 0x7f, 0xff, 0xff, 0xff, 1}, {1, 0, 0, 0, 0},
		onWire(1, zipped(make([]byte, 5<<20))), // more than a message may have
		onWire(1, append(zipped(wrapped("hello")), "more"...)),
		append(onWire(0, wrapped("first")), onWire(1, []byte("no gzip"))...),
		bytes.Repeat(onWire(0, nil), 100),
	} {
		f.Add(false, "gzip", seed)
		f.Add(true, "", seed)
	}
	f.Add(false, "br", onWire(1, wrapped("hello")))
	f.Add(true, "identity", onWire(1, wrapped("hello")))
	f.Add(true, "gzip, gzip", hello)
	f.Add(false, strings.Repeat("x", 10_000), hello)

	leader, follower := pair(f, echoing)
	client := plainHTTP(f)
	f.Fuzz(func(t *testing.T, stream bool, encoding string, body []byte) {
		leader.t, follower.t = t, t
		method := unaryMethod
		if stream {
			method = bidiMethod
		}
		round := leader.round.Add(1)
		leader.calls.Store(0)
		oneHTTP, one := post(t, client, leader.address, method, encoding, body, round)
		require.LessOrEqual(t, leader.calls.Load(), int64(1))
		otherHTTP, other := post(t, client, follower.address, method, encoding, body, round)
		require.LessOrEqual(t, leader.calls.Load(), int64(2))
		require.Zero(t, follower.calls.Load())
		require.Equal(t, oneHTTP, otherHTTP)
		// If two messages cannot be read, a follower may read the second before the handler has
		// returned its error for the first.
		if mistakes := []string{"8", "12", "13"}; !stream || !slices.Contains(mistakes, one) || !slices.Contains(mistakes, other) {
			require.Equal(t, one, other)
		}
		leader.answers("still there")
		follower.answers("still there")
	})
}
