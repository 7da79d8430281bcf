package contender

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// failing is a key-value store whose transactions end in an error, or are refused.
type failing struct {
	clientv3.KV
	err error
}

func (f failing) Txn(context.Context) clientv3.Txn { return f }
func (f failing) If(...clientv3.Cmp) clientv3.Txn  { return f }
func (f failing) Then(...clientv3.Op) clientv3.Txn { return f }
func (f failing) Else(...clientv3.Op) clientv3.Txn { return f }
func (f failing) Commit() (*clientv3.TxnResponse, error) {
	return &clientv3.TxnResponse{}, f.err
}

// An operation that may have been done is not reported as refused.
func TestOutcomes(t *testing.T) {
	_, err := Guarded(t.Context(), failing{}, "key", 1, clientv3.Op{})
	require.ErrorIs(t, err, ErrRefused)
	_, err = Guarded(t.Context(), failing{err: errors.New("reset")}, "key", 1, clientv3.Op{})
	require.EqualError(t, err, "reset")
	require.NotErrorIs(t, err, ErrRefused)
}
