package watch

import (
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest"
)

// ErrOverwritten is reported by Until when the key lives but was bound to another
// lease, or to none, by a put from outside: it will not end with its session.
var ErrOverwritten = errors.New("the key was bound to another lease")

// Life is one life of a key, from its creation to its deletion.
type Life struct {
	Key string
	// Token is the key's create revision in that life.
	Token eldest.Token
	// Lease, if positive, is the lease that the key must stay bound to.
	Lease int64
	// Known, if positive, is a revision at which the key was alive.
	Known int64
}

// over reports whether the life has ended, or cannot be counted on any more, if this is the key;
// nil: there is none.
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
