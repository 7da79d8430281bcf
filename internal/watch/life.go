package watch

import (
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest"
)

// ErrOverwritten is reported by Until when the key still exists, but a put from outside has bound
// it to another lease, or to none: the key will not be deleted with its session's lease.
var ErrOverwritten = errors.New("the key was bound to another lease")

// Life is one life of a key, from its creation to its deletion.
type Life struct {
	Key string
	// Token is the key's create revision in that life.
	Token eldest.Token
	// Lease, if positive, is the lease that the key must stay bound to.
	Lease int64
	// Known, if positive, is a revision at which the key existed in that life.
	Known int64
}

// over reports whether the life has ended, or can no longer be relied on (err), if kv is the key as
// it is now; nil: the key does not exist.
func (l *Life) over(kv *mvccpb.KeyValue) (over bool, err error) {
	switch {
	case kv == nil || kv.CreateRevision != int64(l.Token):
		return true, nil
	case l.Lease > 0 && kv.Lease != l.Lease:
		return true, ErrOverwritten
	}
	return false, nil
}

func only(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}
