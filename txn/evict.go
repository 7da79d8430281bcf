package txn

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// Suspect is a candidate whose session has heartbeats, none of which a candidate behind it has
// received for too long (decision 0029).
type Suspect struct {
	// Own is the key of the candidate that evicts, OwnToken its create revision.
	Own      string
	OwnToken eldest.Token
	// Key is the key of the suspected candidate, Token its create revision.
	Key   string
	Token eldest.Token
	// Heartbeat is the key of its heartbeats; Mod and Value are the newest one's mod revision and value.
	Heartbeat string
	Mod       int64
	Value     string
}

// Evict deletes the key of a suspected candidate, in one request, if no newer heartbeat was written
// and both candidates exist. It reports whether it did. On an error that wraps
// eldest.ErrOutcomeUnknown it may have; on other errors nothing was changed. The value is compared
// too, because a backup that is restored can repeat mod revisions. The evicting candidate's key is
// written again, unchanged.
func Evict(ctx context.Context, kv clientv3.KV, s Suspect) (evicted bool, err error) {
	resp, err := kv.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.Heartbeat), "=", s.Mod),
		clientv3.Compare(clientv3.Value(s.Heartbeat), "=", s.Value),
		inLife(s.Key, s.Token),
		inLife(s.Own, s.OwnToken),
	).Then(
		clientv3.OpDelete(s.Key),
		// With the put an etcd without space, which takes deletions and no puts, refuses this too.
		clientv3.OpPut(s.Own, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease()),
	).Commit()
	if err != nil {
		return false, Outcome(err)
	}
	return resp.Succeeded, nil
}
