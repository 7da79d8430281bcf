package txn

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/keys"
)

// Entry is what a candidate writes into the queue.
type Entry struct {
	Election string
	Lease    int64
	Value    []byte
}

// Key returns the candidate's key.
func (e Entry) Key() string { return keys.Candidate(e.Election, e.Lease) }

// Position is a candidate's position in the queue as of one revision.
//
// Invariant: Token > 0; the tokens in Ahead are smaller, in descending order; if Complete, all
// older candidates are in Ahead.
type Position struct {
	Token eldest.Token
	// Revision is the etcd revision of the other fields. 0 means that Ahead is a hint, and that its
	// candidates may have left.
	Revision int64
	// Ahead are the nearest older candidates, nearest first, with key, lease and token only.
	Ahead []eldest.Candidate
	// Complete means that Ahead contains all older candidates.
	Complete bool
	// Queue is the number of keys in the election's range, own and foreign ones included; 0 if it
	// is unknown.
	Queue int64
	// Foreign are keys in the range that are not candidates and were ignored.
	Foreign []string
	// Adopted means that the key existed already, from an earlier attempt; Value is then its value,
	// and Ahead is unknown.
	Adopted bool
	Value   []byte
}

// First reports whether this position proves that no older candidate exists.
func (p Position) First() bool { return p.Complete && len(p.Ahead) == 0 }

// Unknown reports whether the older candidates are unknown.
func (p Position) Unknown() bool { return !p.Complete && len(p.Ahead) == 0 }

// Ordering is how candidates enter the queue and find the candidates before them. The default is
// ByPointer. Another Ordering can find the predecessor by other means (ByCreateRevision: by a
// search) or define another order; the result of Ahead proves a win, so it is then responsible for
// G1 and G5 (examples/customise/order has another order). Errors of writes must go through Outcome.
// Errors that wrap eldest.ErrInvalid end a campaign, as do etcd's permanent refusals; others count
// as transient, and the request is repeated. Implementations must be safe for concurrent use.
type Ordering interface {
	// Enter writes the candidate's key, bound to its lease, unless it exists already; then it
	// reports the key as adopted. One request.
	Enter(ctx context.Context, kv clientv3.KV, e Entry) (Position, error)
	// EnterAlone writes the candidate's key only if no other candidate exists; it never queues.
	// Otherwise the error wraps eldest.ErrNotElected and nothing was written. If its own key exists
	// already, from an attempt whose reply was lost, it is reported as adopted. If foreign keys
	// make it impossible to decide in one request, the error wraps eldest.ErrForeignKey.
	EnterAlone(ctx context.Context, kv clientv3.KV, e Entry) (Position, error)
	// Ahead finds the candidates that are still older than this one, whose token is p.Token and
	// whose known elders are p.Ahead (all of them, if p.Complete; otherwise any number, or none).
	// If at is positive the result is as of revision at, or of a newer one; otherwise as of the
	// newest. If the candidate's own key does not exist with the create revision p.Token, the error
	// wraps eldest.ErrDeposed: a result without an older candidate is therefore the proof of a win
	// (G1). The default Ordering sends one request, unless foreign keys interfere, or the server
	// allows fewer operations in a transaction than there are known elders; the whole result is as
	// of its Revision.
	Ahead(ctx context.Context, kv clientv3.KV, e Entry, p Position, at int64) (Position, error)
}

// ByCreateRevision is the queue of etcd's own elections: first come, first served. The zero value
// is ready to use.
type ByCreateRevision struct{}

// nearest is how many older candidates a request reads, and how many a Position has at most. One
// would be enough to find the predecessor. But if all are known, the expensive read is not needed
// when the predecessor is deleted: the older ones can be checked by reading single keys, in one
// transaction with one operation for each (etcd allows 128). For ranges in create-revision order
// the server scans the whole queue (1.2 ms at 1,000 candidates) whatever the limit; a single key
// costs 0.1 ms.
const nearest = 16

// Enter implements Ordering.
func (ByCreateRevision) Enter(ctx context.Context, kv clientv3.KV, e Entry) (Position, error) {
	key := e.Key()
	begin, end := keys.Range(e.Election)
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(
			clientv3.OpPut(key, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease))),
			clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(),
				clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(nearest+1))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return Position{}, Outcome(err)
	}
	if !resp.Succeeded {
		return exists(e, resp)
	}
	line := resp.Responses[1].GetResponseRange()
	p := Position{Token: eldest.Token(resp.Header.Revision), Revision: resp.Header.Revision, Queue: line.Count}
	p.older(e, line.Kvs, !line.More)
	return p, nil
}

// EnterAlone implements Ordering.
func (ByCreateRevision) EnterAlone(ctx context.Context, kv clientv3.KV, e Entry) (Position, error) {
	key := e.Key()
	begin, end := keys.Range(e.Election)
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(begin), "=", 0).WithRange(end)).
		Then(clientv3.OpPut(key, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease)))).
		Else(
			clientv3.OpGet(key),
			clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(nearest))).
		Commit()
	if err != nil {
		return Position{}, Outcome(err)
	}
	revision := resp.Header.Revision
	if resp.Succeeded {
		return Position{Token: eldest.Token(revision), Revision: revision, Complete: true, Queue: 1}, nil
	}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return adopted(e, kvs[0], revision)
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if _, err := keys.Parse(e.Election, string(kv.Key)); err == nil {
			return Position{}, fmt.Errorf("%w (seen at revision %d)", eldest.ErrNotElected, revision)
		}
	}
	return Position{}, fmt.Errorf("%w: the election's range contains foreign keys (seen at revision %d)", eldest.ErrForeignKey, revision)
}

// exists returns the candidate's key as a registration found it.
func exists(e Entry, resp *clientv3.TxnResponse) (Position, error) {
	kvs := resp.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return Position{}, fmt.Errorf("inconsistent reply from etcd: %q exists and does not exist", e.Key())
	}
	return adopted(e, kvs[0], resp.Header.Revision)
}

// adopted returns the candidate's key as it was found.
func adopted(e Entry, own *mvccpb.KeyValue, revision int64) (Position, error) {
	if own.Lease != e.Lease {
		return Position{}, fmt.Errorf("%w: the key is bound to lease %x", eldest.ErrDeposed, own.Lease)
	}
	return Position{Token: eldest.Token(own.CreateRevision), Revision: revision, Adopted: true, Value: own.Value}, nil
}

// Ahead implements Ordering. If all older candidates are known, and the server allows a transaction
// of that size, it reads their keys and the candidate's own; otherwise it reads the older ones by
// create revision. Foreign keys that fill a reply cost more requests, each for twice as many keys.
func (ByCreateRevision) Ahead(ctx context.Context, kv clientv3.KV, e Entry, p Position, at int64) (Position, error) {
	read := []clientv3.OpOption{clientv3.WithKeysOnly()}
	if at > 0 {
		// A past revision is the same on every member that has reached it, so no quorum is needed.
		read = append(read, clientv3.WithRev(at), clientv3.WithSerializable())
	}
	if p.Complete {
		next, err := aheadOfKnown(ctx, kv, e, p, read)
		if !rpcerr.Is(err, rpctypes.ErrTooManyOps) {
			return next, err
		}
	}
	begin, end := keys.Range(e.Election)
	for limit := int64(nearest); ; limit *= 2 {
		older := slices.Concat(read, []clientv3.OpOption{
			clientv3.WithRange(end), clientv3.WithMaxCreateRev(int64(p.Token) - 1), clientv3.WithLimit(limit),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
		})
		answers, revision, err := readAll(ctx, kv, []clientv3.Op{clientv3.OpGet(e.Key(), read...), clientv3.OpGet(begin, older...)})
		if err != nil {
			return Position{}, err
		}
		if err := present(answers[0], p.Token, revision); err != nil {
			return Position{}, err
		}
		next := Position{Token: p.Token, Revision: revision}
		found := answers[1].Kvs
		next.older(e, found, int64(len(found)) < limit)
		if next.Unknown() {
			continue // the whole reply was foreign keys
		}
		return next, nil
	}
}

func aheadOfKnown(ctx context.Context, kv clientv3.KV, e Entry, p Position, read []clientv3.OpOption) (Position, error) {
	ops := []clientv3.Op{clientv3.OpGet(e.Key(), read...)}
	for _, c := range p.Ahead {
		ops = append(ops, clientv3.OpGet(c.Key, read...))
	}
	answers, revision, err := readAll(ctx, kv, ops)
	if err != nil {
		return Position{}, err
	}
	if err := present(answers[0], p.Token, revision); err != nil {
		return Position{}, err
	}
	next := Position{Token: p.Token, Revision: revision, Complete: true}
	for i, c := range p.Ahead {
		if kvs := answers[i+1].Kvs; len(kvs) > 0 && kvs[0].CreateRevision == int64(c.Token) {
			next.Ahead = append(next.Ahead, c)
		}
	}
	return next, nil
}

// present returns an error unless own has the candidate's key with the create revision token.
func present(own *clientv3.GetResponse, token eldest.Token, revision int64) error {
	if len(own.Kvs) == 0 || own.Kvs[0].CreateRevision != int64(token) {
		return fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, revision)
	}
	return nil
}

// readAll sends a single read as it is and several reads as one transaction.
func readAll(ctx context.Context, kv clientv3.KV, ops []clientv3.Op) ([]*clientv3.GetResponse, int64, error) {
	if len(ops) == 1 {
		resp, err := kv.Do(ctx, ops[0])
		if err != nil {
			return nil, 0, err
		}
		get := resp.Get()
		return []*clientv3.GetResponse{get}, atRevision(ops[0], get.Header.Revision), nil
	}
	resp, err := kv.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, 0, err
	}
	answers := make([]*clientv3.GetResponse, len(resp.Responses))
	for i, r := range resp.Responses {
		answers[i] = (*clientv3.GetResponse)(r.GetResponseRange())
	}
	return answers, atRevision(ops[0], resp.Header.Revision), nil
}

func atRevision(op clientv3.Op, header int64) int64 {
	if rev := op.Rev(); rev > 0 {
		return rev
	}
	return header
}

// older adds the nearest candidates that are older to Ahead, and keys that are no candidates to
// Foreign. all means that the reply contains all older keys.
func (p *Position) older(e Entry, newestFirst []*mvccpb.KeyValue, all bool) {
	for _, kv := range newestFirst {
		key := string(kv.Key)
		lease, err := keys.Parse(e.Election, key)
		switch {
		case err != nil:
			p.Foreign = append(p.Foreign, key)
		case kv.CreateRevision < int64(p.Token):
			// The lease comes from the key: the field is 0 in replies with keys only.
			p.Ahead = append(p.Ahead, eldest.Candidate{
				Key: key, Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision,
			})
		}
	}
	p.Complete = all && len(p.Ahead) <= nearest
	p.Ahead = p.Ahead[:min(len(p.Ahead), nearest)]
}

// Repeatable reports whether a read at a revision failed only because the member has not reached
// the revision yet, or has compacted it, so that the newest state should be read instead.
func Repeatable(err error) bool { return rpcerr.Future(err) || rpcerr.Compacted(err) }
