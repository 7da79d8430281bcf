package payload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/customise/payload"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

var someone = identity.Identity{NodeID: "n1", Instance: "ab", Address: "h:1", TTL: 1500 * time.Millisecond}

func TestRoundTrip(t *testing.T) {
	value, err := payload.JSON{Zone: "z"}.Encode(someone)
	require.NoError(t, err)
	require.JSONEq(t, `{"node":"n1","instance":"ab","address":"h:1","ttl":2,"zone":"z"}`, string(value))
	back, err := payload.JSON{}.Decode(value)
	require.NoError(t, err)
	want := someone
	want.TTL = 2 * time.Second
	require.Equal(t, want, back)
	require.Equal(t, "z", payload.Extra(value))
	back, err = payload.JSON{}.Decode([]byte(`{"node":"n1","ttl":2,"later":{"x":[1]}}`))
	require.NoError(t, err, "fields of the future")
	require.Equal(t, "n1", back.NodeID)

	for _, bad := range []identity.Identity{{}, {NodeID: "n", TTL: -1}} {
		_, err := payload.JSON{}.Encode(bad)
		require.ErrorIs(t, err, eldest.ErrInvalid)
	}
}

func TestForeignValues(t *testing.T) {
	old, err := identity.Protobuf{}.Encode(someone)
	require.NoError(t, err)
	young, err := payload.JSON{}.Encode(someone)
	require.NoError(t, err)
	for _, value := range []string{"", "{", "null", "[]", `{"ttl":1}`, `{"node":1}`, `{"node":"n","ttl":-1}`, `{"node":"n","ttl":1e12}`, string(old)} {
		id, err := payload.JSON{}.Decode([]byte(value))
		require.ErrorIs(t, err, eldest.ErrForeignValue, "%q", value)
		require.Zero(t, id)
	}
	_, err = identity.Protobuf{}.Decode(young)
	require.ErrorIs(t, err, eldest.ErrForeignValue, "and the other way round")
	for _, m := range []payload.Moving{{identity.Protobuf{}, payload.JSON{}}, {payload.JSON{}, identity.Protobuf{}}} {
		for _, value := range [][]byte{old, young} {
			id, err := m.Decode(value)
			require.NoError(t, err)
			require.Equal(t, "n1", id.NodeID)
		}
		_, err := m.Decode([]byte("http://10.0.0.9"))
		require.ErrorIs(t, err, eldest.ErrForeignValue)
	}
}
