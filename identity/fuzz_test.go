package identity_test

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// FuzzDecode: any bytes decode to an identity that can be encoded again with the same meaning, or
// to an ErrForeignValue without an identity; never to a panic. The result does not depend on
// unknown fields, nor on later changes of the bytes.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "0a026e31100a", "0a026e31100a1a03683a3122026162", "100a", "0a00", "0a016e10ffffffffffffffffff01",
		"0a016e2a067a6f6e652d62", "0a056e31", "08011205", "0a02c328", "0a016e0b0c", "7b226e6f6465223a317d",
		"0a01610a0162", "0a016e1080", "0a016e10ffffffffffffffffffff01", "0a016e0b0b0c0c", "0a016e0d00000000", "0a036e0031100a",
		"0a071b5b33316d6e31100a", "0a04e280ae6e100a", "0a8180808000416e", "1000100a0a016e",
	} {
		f.Add(unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		kept := bytes.Clone(value)
		id, err := identity.Protobuf{}.Decode(value)
		require.Equal(t, kept, value, "decoding writes to what is not its own")
		if err != nil {
			require.ErrorIs(t, err, eldest.ErrForeignValue)
			require.NotErrorIs(t, err, eldest.ErrInvalid, "it is not the reader's mistake")
			require.Zero(t, id, "half an identity")
			require.Less(t, len(err.Error()), 500)
			return
		}
		require.NotEmpty(t, id.NodeID)
		require.GreaterOrEqual(t, id.TTL, time.Duration(0))
		require.Zero(t, id.TTL%time.Second)
		for _, text := range []string{id.NodeID, id.Instance, id.Address} {
			require.True(t, utf8.ValidString(text))
			require.LessOrEqual(t, len(text), identity.MaxText)
		}
		again, err := identity.Protobuf{}.Encode(id)
		require.NoError(t, err)
		back, err := identity.Protobuf{}.Decode(again)
		require.NoError(t, err)
		require.Equal(t, id, back)
		twice, err := identity.Protobuf{}.Encode(back)
		require.NoError(t, err)
		require.Equal(t, again, twice, "what is written of one identity changes")
		require.LessOrEqual(t, len(again), len(value), "more is written than was read")

		// An unknown field, after and before the known ones.
		field := protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "later")
		for _, more := range [][]byte{append(bytes.Clone(value), field...), append(bytes.Clone(field), value...)} {
			newer, err := identity.Protobuf{}.Decode(more)
			require.NoError(t, err)
			require.Equal(t, id, newer)
		}
		clear(value)
		require.Equal(t, back, id, "what was decoded changes with the bytes")
	})
}

// FuzzEncode: an identity is refused, for the reasons that Encode documents, or is decoded as it
// was, with its TTL rounded up to a second.
func FuzzEncode(f *testing.F) {
	long := strings.Repeat("x", identity.MaxText)
	for _, seed := range []struct {
		node, instance, address string
		ttl                     int64
	}{
		{"n1", "ab", "h:1", int64(10 * time.Second)},
		{"", "ab", "h:1", 1},
		{"n1", "", "", 0},
		{"n1", "", "", 1},
		{"n1", "", "", int64(900 * time.Millisecond)},
		{"n1", "", "", int64(1900 * time.Millisecond)},
		{"n1", "", "", int64(8760 * time.Hour)},
		{"n1", "", "", -1},
		{"n1", "", "", math.MaxInt64},
		{"n1", "", "", math.MinInt64},
		{long, long, long, int64(time.Second)},
		{long + "x", "", "", 0},
		{"n\xff", "\xff", "\xff", 0},
		{"\x1b]0;owned\x07", "\u202e", "\x00", 1},
		{"é", "\u2028", "[::1]:1", int64(time.Second) + 1},
	} {
		f.Add(seed.node, seed.instance, seed.address, seed.ttl)
	}
	f.Fuzz(func(t *testing.T, node, instance, address string, ttl int64) {
		id := identity.Identity{NodeID: node, Instance: instance, Address: address, TTL: time.Duration(ttl)}
		fine := node != "" && ttl >= 0
		for _, text := range []string{node, instance, address} {
			fine = fine && len(text) <= identity.MaxText && utf8.ValidString(text)
		}
		value, err := identity.Protobuf{}.Encode(id)
		if !fine {
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.Nil(t, value)
			require.Less(t, len(err.Error()), 500)
			for _, r := range err.Error() {
				require.True(t, strconv.IsPrint(r), "%q in %q", r, err)
			}
			return
		}
		require.NoError(t, err)
		back, err := identity.Protobuf{}.Decode(value)
		require.NoError(t, err)
		longest := time.Duration(math.MaxInt64).Truncate(time.Second)
		if id.TTL > longest {
			id.TTL = longest
		} else if rest := id.TTL % time.Second; rest > 0 {
			id.TTL += time.Second - rest
		}
		require.Equal(t, id, back)
	})
}
