package curator

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// FuzzHop: what says that it was forwarded is a hop that a curator wrote, or is refused;
// no caller's metadata becomes a hop on the way to the leader; and what the service sees
// there is what the caller sent, whatever that was.
func FuzzHop(f *testing.F) {
	for _, seed := range []struct{ token, from, key, value string }{
		{"7", "node", "red", "green"},
		{"-1", "%zz", "", "\x00"},
		{"+7", "n", "a", "b"}, // a number, and not as a curator writes it
		{"007", "n", "a", "b"},
		{"9223372036854775808", "n\xff \n", "a", "b"},
		{"7", "a/b?c#d%2F", "eldest-hop", "8"}, // a caller who claims a hop
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
		h, err := hopOf(incoming(t, metadata.MD{hopKey: {token}, fromKey: {from}}))
		if err != nil {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.Zero(t, h, "half a hop")
			requirePlain(t, err)
			h = hop{token: 7, from: from}
		} else {
			require.Positive(t, int64(h.token))
			require.Equal(t, strconv.FormatInt(int64(h.token), 10), token, "no curator writes it like that")
		}
		_, err = hopOf(incoming(t, metadata.MD{hopKey: {token, token}}))
		require.Equal(t, codes.InvalidArgument, status.Code(err), "two hops")

		// The caller's metadata, on its way; gRPC has no upper case.
		key = strings.ToLower(key)
		caller := metadata.MD{":authority": {"called"}}
		caller[key] = append(caller[key], value, value)
		sent := toLeader(incoming(t, caller), hop{token: h.token, from: from})
		for key, values := range sent { // or gRPC's client refuses the call
			require.True(t, plainKey(key) || key[0] == ':', "%q", key)
			require.True(t, strings.HasSuffix(key, "-bin") || !slices.ContainsFunc(values, unprintable), "%q: %q", key, values)
		}
		// gRPC writes what is its own anew, in the place of the caller's.
		sent["content-type"], sent["user-agent"], sent[":authority"] = []string{"application/grpc"}, []string{"the hop's"}, []string{"leader:1"}
		got, err := hopOf(incoming(t, sent))
		require.NoError(t, err)
		require.Equal(t, hop{token: h.token, from: from}, got, "the caller has a say in the hop")
		require.Nil(t, introduction(incoming(t, sent)), "the caller has a say in who it is")
		seen, _ := metadata.FromIncomingContext(fromCaller(incoming(t, sent), got))
		for _, ours := range []string{"content-type", "grpc-accept-encoding", hopKey, fromKey, agentKey, authorityKey, oddKey, servedKey, callerKey} {
			delete(caller, ours)
			if ours == "content-type" {
				delete(seen, ours)
			}
		}
		require.Equal(t, caller, seen)

		// What a leader's trailer says of the hop is not passed on.
		trailer := metadata.Join(h.served(), metadata.Pairs(unaryKey, "", "content-type", "application/grpc", "k", value))
		require.Equal(t, metadata.MD{"k": {value}}, toCaller(trailer))
	})
}

func incoming(t *testing.T, md metadata.MD) context.Context {
	return metadata.NewIncomingContext(t.Context(), md.Copy())
}

// requirePlain holds that a text can be shown on a terminal.
func requirePlain(t *testing.T, err error) {
	t.Helper()
	for _, r := range err.Error() {
		require.True(t, strconv.IsPrint(r), "%q in %q", r, err)
	}
}

// A token that is a number, and not as a curator writes it, is no hop of a curator's.
func TestHopIsWrittenOneWay(t *testing.T) {
	for _, token := range []string{"+7", "07", "7_0", " 7", "7 ", "0x7", "７"} {
		_, err := hopOf(incoming(t, metadata.MD{hopKey: {token}}))
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%q", token)
	}
	h, err := hopOf(incoming(t, metadata.MD{hopKey: {"7"}}))
	require.NoError(t, err)
	require.Equal(t, hop{token: eldest.Token(7)}, h)
}
