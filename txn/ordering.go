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

// Entry is what a candidate puts into the queue.
type Entry struct {
	Election string
	Lease    int64
	Value    []byte
}

// Key returns the candidate's key.
func (e Entry) Key() string { return keys.Candidate(e.Election, e.Lease) }

// Position is a candidate's place in the queue as of one revision.
//
// Invariant: Token > 0; every candidate in Ahead has a smaller one, in falling
// order; if Complete, there is nobody older than those in Ahead.
type Position struct {
	Token eldest.Token
	// Revision is the etcd revision at which all of this was true; 0: Ahead is a hint, and who is
	// named there may be gone.
	Revision int64
	// Ahead are the nearest older candidates, nearest first, with key, lease and
	// token only.
	Ahead []eldest.Candidate
	// Complete says that Ahead holds all older candidates.
	Complete bool
	// Queue is the number of keys in the election's range, own and foreign ones
	// included; 0 where it was not learnt.
	Queue int64
	// Foreign are keys in the range that are not candidates and were ignored.
	Foreign []string
	// Adopted says that the key was there already, from an earlier attempt;
	// Value is then what it holds. Ahead was not learnt.
	Adopted bool
	Value   []byte
}

// First reports whether this place is the proof that nobody is older.
func (p Position) First() bool { return p.Complete && len(p.Ahead) == 0 }

// Unknown reports whether it was not learnt who is older.
func (p Position) Unknown() bool { return !p.Complete && len(p.Ahead) == 0 }

// Ordering is how candidates enter the line and find who stands before them. The
// default is ByPointer. Another one can find the predecessor by other
// means (ByCreateRevision: by a search) or define another order; the
// proof of a win is what Ahead answers, so G1 and G5 are then its duty (examples/customise/order
// has another order). Errors of what was written go through Outcome. Errors that
// wrap eldest.ErrInvalid end a campaign, as do etcd's final refusals; others are
// taken for passing, and the question is asked again.
// Implementations must be safe for concurrent use.
type Ordering interface {
	// Enter writes the candidate's key, bound to its lease, unless it is there
	// already; then it reports the key as adopted. One request.
	Enter(ctx context.Context, kv clientv3.KV, e Entry) (Position, error)
	// EnterAlone writes the candidate's key only if no other candidate is there;
	// it never queues. Otherwise the error wraps eldest.ErrNotElected and nothing
	// was written. An own key that is there already, from an attempt whose reply
	// was lost, is reported as adopted. Where foreign keys make it impossible to
	// tell in one request, the error wraps eldest.ErrForeignKey.
	EnterAlone(ctx context.Context, kv clientv3.KV, e Entry) (Position, error)
	// Ahead finds who of the candidates is still older than this
	// one, whose token p.Token and known elders p.Ahead (all of them, if
	// p.Complete; else any number, or none) are. If at is positive the answer is the state at revision at,
	// or a newer one, else the newest. A candidate that is itself no longer there, in the life
	// that p.Token names, is an error that wraps eldest.ErrDeposed: an answer
	// without anybody ahead is therefore the proof of a win (G1). One request of the
	// default queue, unless foreign keys get in the way, or the server allows fewer
	// operations in a transaction than there are known elders; all of the answer is true at
	// its Revision.
	Ahead(ctx context.Context, kv clientv3.KV, e Entry, p Position, at int64) (Position, error)
}

// ByCreateRevision is the queue of etcd's own elections: first come, first
// served. The zero value is ready.
type ByCreateRevision struct{}

// nearest is how many older candidates a request asks for, and how many a place has at
// most. One would do to find the predecessor. Knowing all of them saves the expensive
// question when the predecessor is deleted: those older than it can be checked by reading
// single keys, in one transaction, which has one operation for each (etcd allows 128).
// Ranges with a create-revision order cost the server a pass over the whole queue (1.2 ms
// at 1,000 candidates) whatever the limit; a single key 0.1 ms.
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
		return Position{}, outcome(err)
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
		return Position{}, outcome(err)
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
	return Position{}, fmt.Errorf("%w: the election's range holds foreign keys (seen at revision %d)", eldest.ErrForeignKey, revision)
}

// exists describes the own key as a registration found it.
func exists(e Entry, resp *clientv3.TxnResponse) (Position, error) {
	kvs := resp.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return Position{}, fmt.Errorf("etcd contradicts itself: %q exists and does not", e.Key())
	}
	return adopted(e, kvs[0], resp.Header.Revision)
}

// adopted describes the own key as it was found.
func adopted(e Entry, own *mvccpb.KeyValue, revision int64) (Position, error) {
	if own.Lease != e.Lease {
		return Position{}, fmt.Errorf("%w: the key is bound to lease %x", eldest.ErrDeposed, own.Lease)
	}
	return Position{Token: eldest.Token(own.CreateRevision), Revision: revision, Adopted: true, Value: own.Value}, nil
}

// Ahead implements Ordering. Where all older candidates are known, and the server allows a
// transaction of that size, it reads their keys and the candidate's own; else it asks for
// the older ones by create revision. Foreign keys that fill an answer cost more requests,
// each for twice as many keys.
func (ByCreateRevision) Ahead(ctx context.Context, kv clientv3.KV, e Entry, p Position, at int64) (Position, error) {
	read := []clientv3.OpOption{clientv3.WithKeysOnly()}
	if at > 0 {
		// What was true at a past revision is the same on every member that has
		// reached it, so no quorum needs to be asked.
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
			continue // foreign keys filled the whole answer
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

// present returns an error unless own shows the candidate's key in the life that
// token names.
func present(own *clientv3.GetResponse, token eldest.Token, revision int64) error {
	if len(own.Kvs) == 0 || own.Kvs[0].CreateRevision != int64(token) {
		return fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, revision)
	}
	return nil
}

// readAll sends one read as it is and several as one transaction.
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

// older takes the nearest of what is older than the candidate into Ahead, and what is no
// candidate at all into Foreign. all says that the answer holds everything older.
func (p *Position) older(e Entry, newestFirst []*mvccpb.KeyValue, all bool) {
	for _, kv := range newestFirst {
		key := string(kv.Key)
		lease, err := keys.Parse(e.Election, key)
		switch {
		case err != nil:
			p.Foreign = append(p.Foreign, key)
		case kv.CreateRevision < int64(p.Token):
			// The lease comes from the key: replies with keys only leave the
			// field 0.
			p.Ahead = append(p.Ahead, eldest.Candidate{
				Key: key, Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision,
			})
		}
	}
	p.Complete = all && len(p.Ahead) <= nearest
	p.Ahead = p.Ahead[:min(len(p.Ahead), nearest)]
}

// Repeatable reports whether a read pinned at a revision failed only because the
// member that was asked has not reached the revision yet, or has compacted it
// away, so that the newest state should be asked for instead.
func Repeatable(err error) bool { return rpcerr.Future(err) || rpcerr.Compacted(err) }
