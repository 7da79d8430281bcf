package curator

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// onWire is one gRPC message as it stands in the body of a request.
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

// plainHTTP is a client of HTTP/2 that knows nothing of gRPC, so that it can send what no
// gRPC client would.
func plainHTTP(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: etcdtest.Patience}
}

// post sends a body to a method, and returns gRPC's status of the answer.
func post(t *testing.T, client *http.Client, address, method, encoding string, body []byte) (httpCode int, grpcCode string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+method, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	if encoding != "" {
		req.Header["Grpc-Encoding"] = []string{encoding}
	}
	resp, err := client.Do(req)
	if err != nil {
		// What the transport does not send, or the server ends without an answer.
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

// FuzzWire: frames of any kind, torn, too long, compressed or not, and any number of
// them: the follower and the leader answer alike, no handler is called twice, and both go
// on answering.
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

	leader, follower := pair(f, &script{unary: echo, stream: echoes})
	client := plainHTTP(f)
	f.Fuzz(func(t *testing.T, stream bool, encoding string, body []byte) {
		leader.t, follower.t = t, t
		method := unaryMethod
		if stream {
			method = bidiMethod
		}
		leader.calls.Store(0)
		oneHTTP, one := post(t, client, leader.address, method, encoding, body)
		require.LessOrEqual(t, leader.calls.Load(), int64(1))
		otherHTTP, other := post(t, client, follower.address, method, encoding, body)
		require.LessOrEqual(t, leader.calls.Load(), int64(2))
		require.Zero(t, follower.calls.Load())
		require.Equal(t, oneHTTP, otherHTTP)
		// Of two messages that cannot be read, a follower may come to the second before the
		// handler has said what it thinks of the first.
		if mistakes := []string{"8", "12", "13"}; !stream || !slices.Contains(mistakes, one) || !slices.Contains(mistakes, other) {
			require.Equal(t, one, other)
		}
		for _, n := range []*node{leader, follower} {
			out, err := n.unary(etcdtest.Context(t), "still there")
			require.NoError(t, err)
			require.Equal(t, "still there", out)
		}
	})
}
