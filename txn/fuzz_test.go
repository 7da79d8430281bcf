package txn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// errSent is the error of a transaction that the guard sends.
var errSent = errors.New("it was sent")

// FuzzGuardKeepsOut: no put and no delete, of a key or of any range, alone or nested, reaches a key
// of the election through its own guard; and an operation that reaches none of them is not refused.
func FuzzGuardKeepsOut(f *testing.F) {
	for _, seed := range []struct{ election, key, end string }{
		{"svc", "svc/1", ""}, {"svc", "svc/", ""}, {"svc", "svc0", ""}, {"svc", "svc.", ""},
		{"svc", "svc", "svc/"}, {"svc", "svc", "svc/\x00"}, {"svc", "svc0", "\x00"}, {"svc", "a", "\x00"},
		{"svc", "", "\x00"}, {"svc", "\x00", "\x00"}, {"svc", "a", "z"}, {"svc", "svc/b", "svc/a"}, {"svc", "svc/\xff", "svc0"},
		{"\xff", "\xff/", "\x00"}, {"\xff\xff", "\xff0", "\x00"}, {"\x00", "\x00/1", ""},
	} {
		f.Add(seed.election, seed.key, seed.end)
	}
	outbox := etcdtest.WithTxns(nil, func(*etcdtest.Txn) (*clientv3.TxnResponse, error) { return nil, errSent })
	f.Fuzz(func(t *testing.T, election, key, end string) {
		if keys.Check(election) != nil || key == "" {
			return // etcd has no empty key
		}
		begin, stop := keys.Range(election)
		// The smallest key of the election that a range from key on may contain.
		first := max(key, begin)
		covered := first < stop // then first has the prefix, because it is not less than begin
		switch end {
		case "": // one key
			covered = strings.HasPrefix(key, begin)
		case "\x00": // to the end of all keys
		default:
			covered = covered && first < end
		}
		guard := txn.Guard{Election: election, Key: keys.Candidate(election, 1), Token: 1}
		try := func(op clientv3.Op) bool {
			_, err := guard.Txn(t.Context(), outbox).Then(op).Commit()
			if errors.Is(err, errSent) {
				return true
			}
			require.ErrorIs(t, err, eldest.ErrInvalid)
			return false
		}
		nested := func(op clientv3.Op) clientv3.Op {
			return clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{op}, nil)})
		}
		remove := clientv3.OpDelete(key)
		if end != "" {
			remove = clientv3.OpDelete(key, clientv3.WithRange(end))
		}
		sent := try(remove)
		if covered {
			require.False(t, sent, "[%q, %q) is deleted, which has %q of %q in it", key, end, first, election)
		} else if end == "" || end == "\x00" || key < end { // for a range whose end is before its key nothing is required
			require.True(t, sent, "[%q, %q) is refused, which has nothing of %q in it", key, end, election)
		}
		require.Equal(t, sent, try(nested(remove)))
		put := clientv3.OpPut(key, "x")
		require.Equal(t, !strings.HasPrefix(key, begin), try(put))
		require.Equal(t, !strings.HasPrefix(key, begin), try(nested(put)))
		require.True(t, try(clientv3.OpGet(key)), "reading is free")
	})
}
