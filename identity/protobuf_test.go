package identity_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/identity/identitypb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// Row 38: the exact bytes, of the two old fields and of all four. A change of any of
// them is a change for programs that we do not know.
func TestRequirement38Bytes(t *testing.T) {
	for name, tc := range map[string]struct {
		id    identity.Identity
		bytes string
	}{
		"two fields": {
			identity.Identity{NodeID: "n1", TTL: 10 * time.Second},
			"0a 02 6e31  10 0a",
		},
		"all fields": {
			identity.Identity{NodeID: "n1", TTL: 10 * time.Second, Address: "h:1", Instance: "ab"},
			"0a 02 6e31  10 0a  1a 03 683a31  22 02 6162",
		},
		"a TTL of two bytes": {
			identity.Identity{NodeID: "northern-1a2b", TTL: 300 * time.Second},
			"0a 0d 6e6f72746865726e2d31613262  10 ac02",
		},
		"no TTL": {identity.Identity{NodeID: "n"}, "0a 01 6e"},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := identity.Protobuf{}.Encode(tc.id)
			require.NoError(t, err)
			require.Equal(t, unhex(t, tc.bytes), value)
			back, err := identity.Protobuf{}.Decode(value)
			require.NoError(t, err)
			require.Equal(t, tc.id, back)
		})
	}
}

// Regression 27, the part of the decoder: a value that is not an identity is foreign, with the
// reason in the error, and never a node without a name.
func TestForeignValues(t *testing.T) {
	for name, value := range map[string][]byte{
		"nil":                  nil,
		"empty":                {},
		"text":                 []byte("http://10.0.0.7:2380"),
		"JSON":                 []byte(`{"node_id":"n1","ttl":10}`),
		"binary":               {0x00, 0xff, 0x00, 0xff},
		"cut off":              unhex(t, "0a 05 6e31"),
		"cut off in the TTL":   unhex(t, "0a 02 6e31 10 80"),
		"no node ID":           unhex(t, "10 0a"),
		"an empty node ID":     unhex(t, "0a 00 10 0a"),
		"a TTL without end":    unhex(t, "0a 01 6e 10 ffffffffffffffffffffff01"),
		"node ID, no UTF-8":    unhex(t, "0a 02 6eff 10 0a"),
		"node ID, a number":    unhex(t, "08 01 10 0a"),
		"node ID, too long":    protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), strings.Repeat("x", identity.MaxText+1)),
		"field 0":              unhex(t, "0a 01 6e 02 01 00"),
		"a group without end":  unhex(t, "0a 01 6e 2b"),
		"a megabyte of zeroes": make([]byte, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			id, err := identity.Protobuf{}.Decode(value)
			require.ErrorIs(t, err, eldest.ErrForeignValue)
			require.Zero(t, id)
			require.Less(t, len(err.Error()), 500)
		})
	}
}

// Unknown fields do no harm, and programs that handle the message keep them.
func TestRequirement38UnknownFieldsAreKept(t *testing.T) {
	known := identity.Identity{NodeID: "n1", TTL: 10 * time.Second, Address: "h:1", Instance: "ab"}
	value, err := identity.Protobuf{}.Encode(known)
	require.NoError(t, err)
	value = protowire.AppendString(protowire.AppendTag(value, 5, protowire.BytesType), "zone-b")
	value = protowire.AppendVarint(protowire.AppendTag(value, 1000, protowire.VarintType), 7)

	id, err := identity.Protobuf{}.Decode(value)
	require.NoError(t, err)
	require.Equal(t, known, id)

	joined, err := identity.Protobuf{}.Decode(unhex(t, "0a 01 61 10 05 0a 01 62"))
	require.NoError(t, err)
	require.Equal(t, identity.Identity{NodeID: "b", TTL: 5 * time.Second}, joined, "of two fields with one number the last counts")

	var m identitypb.LeaderElectionValue
	require.NoError(t, proto.Unmarshal(value, &m))
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
	require.NoError(t, err)
	require.Equal(t, value, again)
}

// Two lives of one node have two names.
func TestInstances(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		name := identity.NewInstance()
		require.Len(t, name, 16)
		require.False(t, seen[name])
		seen[name] = true
	}
}
