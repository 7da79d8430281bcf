package requestkey

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Key is a request key as one reply showed it; the zero value is a request key that does not exist.
//
// Invariant: Mod is 0 if and only if the request key does not exist; it grows with each write.
type Key struct {
	// Value is the content.
	Value []byte
	// Mod and Created are the key's mod and create revisions.
	Mod, Created int64
	// Lease is the lease that the request key is bound to.
	Lease int64
}

// KeyOf returns the request key that a reply or an event shows; nil is a request key that does not exist.
func KeyOf(kv *mvccpb.KeyValue) Key {
	if kv == nil {
		return Key{}
	}
	return Key{Value: kv.Value, Mod: kv.ModRevision, Created: kv.CreateRevision, Lease: kv.Lease}
}

// Survey reads an election's queue and its request keys, by lease, at one revision, in one request.
func Survey(ctx context.Context, kv clientv3.KV, election string) (txn.Snapshot, map[int64]Key, error) {
	begin, end := keys.Range(election)
	first, last := keys.RequestRange(election)
	resp, err := kv.Txn(ctx).Then(
		clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(first, clientv3.WithRange(last))).Commit()
	if err != nil {
		return txn.Snapshot{}, nil, err
	}
	line, boxes := txn.Snapshot{Revision: resp.Header.Revision}, make(map[int64]Key)
	line.Queue, line.Foreign = view.Queue(election, resp.Responses[0].GetResponseRange().Kvs)
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if lease, err := keys.ParseRequest(election, string(kv.Key)); err == nil {
			boxes[lease] = KeyOf(kv)
		}
	}
	return line, boxes, nil
}

// Write writes the request key of a candidate, bound to its lease, if the candidate's key has this
// token; else the error wraps eldest.ErrDeposed and nothing is written. It overwrites the content
// of an earlier life. The Value of the entry is the request key's, not the candidate's. Write returns
// the request key as it is now.
func Write(ctx context.Context, kv clientv3.KV, e txn.Entry, token eldest.Token) (Key, error) {
	box := keys.Request(e.Election, e.Lease)
	resp, err := kv.Txn(ctx).
		If(txn.Guard{Key: e.Key(), Token: token}.Compare()).
		Then(clientv3.OpPut(box, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease))), clientv3.OpGet(box)).
		Commit()
	switch {
	case err != nil:
		return Key{}, txn.Outcome(err)
	case !resp.Succeeded:
		return Key{}, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, resp.Header.Revision)
	}
	return KeyOf(first(resp.Responses[1].GetResponseRange().Kvs)), nil
}

// Swap is one change of a request key. The requesting client and the candidate take turns to write it.
type Swap struct {
	// Election and Lease identify the request key.
	Election string
	Lease    int64
	// Mod is the mod revision at which it was seen: if it was written since, nothing is written.
	Mod int64
	// Value is the new content. The request key stays bound to its lease.
	Value []byte
	// While are candidates that must exist, each with its token, or nothing is written. Only Key
	// and Token are used.
	While []eldest.Candidate
	// Unchanged are request keys of other candidates that must be unchanged, or nothing is written: no
	// other request may be about to move the candidates of While. Mod 0 is a request key that does not
	// exist.
	Unchanged []KeyAt
	// Before, if positive, makes Do read the candidates that are older than this token, at the
	// revision of the change.
	Before eldest.Token
}

// KeyAt is the request key of a candidate, by its lease, at a mod revision.
type KeyAt struct{ Lease, Mod int64 }

// Swapped is the result of a Swap.
type Swapped struct {
	// Done reports whether the request key was written.
	Done bool
	// Key is the request key as it is now, whether it was written or not.
	Key Key
	// Gone is the first candidate of Swap.While that does not exist any more; zero if all exist. If
	// it is zero, the change was not done, and Key is at Swap.Mod, then one of Swap.Unchanged has
	// changed.
	Gone eldest.Candidate
	// Older are the candidates older than Swap.Before, oldest first, without values;
	// only if Done.
	Older []eldest.Candidate
	// Revision is the etcd revision of the result.
	Revision int64
}

// Do carries the change out, in one request. If a Swap is sent again after a lost reply, the
// request key may have been written since: Key shows whether the Swap itself did.
func (s Swap) Do(ctx context.Context, kv clientv3.KV) (Swapped, error) {
	box := keys.Request(s.Election, s.Lease)
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(box), "=", s.Mod)}
	reads := []clientv3.Op{clientv3.OpGet(box)}
	for _, c := range s.While {
		compares = append(compares, txn.Guard{Key: c.Key, Token: c.Token}.Compare())
		reads = append(reads, clientv3.OpGet(c.Key, clientv3.WithKeysOnly()))
	}
	for _, b := range s.Unchanged {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(keys.Request(s.Election, b.Lease)), "=", b.Mod))
	}
	writes := []clientv3.Op{
		clientv3.OpPut(box, string(s.Value), clientv3.WithIgnoreLease()), clientv3.OpGet(box),
	}
	if s.Before > 0 {
		begin, end := keys.Range(s.Election)
		writes = append(writes, clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(),
			clientv3.WithMaxCreateRev(int64(s.Before)-1), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)))
	}
	resp, err := kv.Txn(ctx).If(compares...).Then(writes...).Else(reads...).Commit()
	if err != nil {
		return Swapped{}, txn.Outcome(err)
	}
	done := Swapped{Done: resp.Succeeded, Revision: resp.Header.Revision}
	answers := resp.Responses
	if done.Done {
		done.Key = KeyOf(first(answers[1].GetResponseRange().Kvs))
		if s.Before > 0 {
			done.Older, _ = view.Queue(s.Election, answers[2].GetResponseRange().Kvs)
		}
		return done, nil
	}
	done.Key = KeyOf(first(answers[0].GetResponseRange().Kvs))
	for i, c := range s.While {
		if kv := first(answers[i+1].GetResponseRange().Kvs); kv == nil || kv.CreateRevision != int64(c.Token) {
			done.Gone = c
			break
		}
	}
	return done, nil
}

// Delete deletes a request key if it has this create revision. It succeeds if the request key does not
// exist or has another create revision.
func Delete(ctx context.Context, kv clientv3.KV, election string, lease, created int64) error {
	box := keys.Request(election, lease)
	_, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(box), "=", created)).Then(clientv3.OpDelete(box)).Commit()
	return txn.Outcome(err)
}

func first(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}
