package txn

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// Suspect is a candidate whose session has heartbeats and was silent for too long, as one that stands
// behind it has seen it (decision 0029).
type Suspect struct {
	// Own is the key of the candidate that evicts, OwnToken its create revision.
	Own      string
	OwnToken eldest.Token
	// Key is the silent one's, Token its create revision.
	Key   string
	Token eldest.Token
	// Beat is the key of its heartbeats, Mod the mod revision of the newest one, Value what that says.
	Beat  string
	Mod   int64
	Value string
}

// Evict deletes the key of a candidate that has been silent, in one request, if no newer beat has come,
// and both candidates stand. It reports whether it did. On an error that wraps
// eldest.ErrOutcomeUnknown it may have; otherwise nothing was changed. The value is compared
// too, because a backup that is restored can repeat mod revisions. The own key is written anew, as it is.
func Evict(ctx context.Context, kv clientv3.KV, s Suspect) (evicted bool, err error) {
	resp, err := kv.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.Beat), "=", s.Mod),
		clientv3.Compare(clientv3.Value(s.Beat), "=", s.Value),
		inLife(s.Key, s.Token),
		inLife(s.Own, s.OwnToken),
	).Then(
		clientv3.OpDelete(s.Key),
		// So that an etcd without space, which takes deletions and no heartbeats, refuses this, too.
		clientv3.OpPut(s.Own, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease()),
	).Commit()
	if err != nil {
		return false, outcome(err)
	}
	return resp.Succeeded, nil
}
