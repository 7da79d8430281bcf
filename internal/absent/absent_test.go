package absent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/absent"
)

type other struct{ clientv3.KV }

func TestClient(t *testing.T) {
	var unset *clientv3.Client
	var kv clientv3.KV
	var lenient *other
	for name, tc := range map[string]struct {
		v    any
		left bool
	}{
		"nothing":                       {nil, true},
		"an interface that nobody set":  {kv, true},
		"a client that nobody set":      {unset, true},
		"the same, in an interface":     {clientv3.KV(unset), true},
		"a client":                      {new(clientv3.Client), false},
		"another implementation":        {other{}, false},
		"a nil pointer of another type": {lenient, false},
	} {
		require.Equal(t, tc.left, absent.Client(tc.v), name)
	}
}
