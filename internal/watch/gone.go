package watch

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// ErrOverwritten is returned by Gone when the key lives but was bound to another
// lease, or to none, by a put from outside: it will not end with its session.
var ErrOverwritten = errors.New("the key was bound to another lease")

// Life is one life of a key, from its creation to its deletion.
type Life struct {
	Key string
	// Token is the key's create revision in that life.
	Token eldest.Token
	// Lease, if positive, is the lease that the key must stay bound to.
	Lease int64
	// Known, if positive, is a revision at which the key was alive (see
	// Target.Known).
	Known int64
}

// Gone blocks until the life has ended and returns a revision at which the key
// was certainly absent or in another life: that of its deletion, unless the watch
// was interrupted just then. On error (ctx's cause, ErrOverwritten, a permanent
// refusal of etcd) nothing is known. The watch stays open until release, which must be
// called, or until ctx ends; see Source.Follow for why.
func (s *Source) Gone(ctx context.Context, l Life) (revision int64, release context.CancelFunc, err error) {
	over := func(kv *mvccpb.KeyValue) (over bool) {
		over, err = l.over(kv)
		return over
	}
	f := following{source: s, target: Target{
		Key:   l.Key,
		Known: l.Known,
		// Only a put can change the lease; what ends a life is a deletion.
		Deletions: l.Lease == 0,
		Snapshot: func(resp *clientv3.GetResponse) bool {
			revision = resp.Header.Revision
			return over(only(resp.Kvs))
		},
		Change: func(at int64, events []*clientv3.Event) bool {
			revision = at
			last := events[len(events)-1]
			return last.Type == mvccpb.DELETE || over(last.Kv)
		},
		Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
			var opts []clientv3.OpOption
			if l.Lease == 0 {
				opts = append(opts, clientv3.WithKeysOnly()) // which leaves the lease out
			}
			return clientv3.OpGet(l.Key, opts...), func(answer clientv3.OpResponse) bool {
				kv := only(answer.Get().Kvs)
				return kv != nil && kv.CreateRevision == int64(l.Token) && (l.Lease == 0 || kv.Lease == l.Lease)
			}
		},
	}}
	release, ferr := f.follow(ctx)
	if ferr != nil {
		return 0, release, ferr
	}
	return revision, release, err
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
