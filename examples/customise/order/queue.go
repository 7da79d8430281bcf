package order

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Queue is a queue in the order of Before, in which the leader stays. It implements
// txn.Ordering. All candidates of an election must use it with the same Before.
type Queue struct {
	// Before reports whether a leads before b. nil means YoungestFirst. It must be a strict order
	// of all candidates, and may use Key, Lease and Token only: they never change while the key
	// exists. If it used a value, a proclaim could reverse the order of two waiters, and each would
	// wait for the other for ever.
	Before func(a, b eldest.Candidate) bool
}

// YoungestFirst orders the candidates last come, first served.
func YoungestFirst(a, b eldest.Candidate) bool { return a.Token > b.Token }

// Enter implements txn.Ordering. Its position is never the proof of a win: only a claim is.
func (q Queue) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Position, error) {
	return unproven(txn.ByCreateRevision{}.Enter(ctx, kv, e))
}

// EnterAlone implements txn.Ordering.
func (q Queue) EnterAlone(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Position, error) {
	return unproven(txn.ByCreateRevision{}.EnterAlone(ctx, kv, e))
}

// unproven clears the other candidates in a position, because they are in etcd's order.
func unproven(p txn.Position, err error) (txn.Position, error) {
	p.Ahead, p.Complete = nil, false
	return p, err
}

// Ahead implements txn.Ordering: it returns the leader, or the next candidate in the order, or
// claims. It reads the newest state, which is at least that of at; nothing can be claimed in the
// past.
func (q Queue) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Position, _ int64) (txn.Position, error) {
	l, err := read(ctx, kv, e.Election)
	if err != nil {
		return txn.Position{}, err
	}
	own := eldest.Candidate{Key: e.Key(), Lease: e.Lease, Token: p.Token}
	next := txn.Position{Token: p.Token, Revision: l.revision, Queue: int64(len(l.candidates) + len(l.foreign)), Foreign: l.foreign}
	if !l.stands(own) {
		return txn.Position{}, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, l.revision)
	}
	leader, led := l.leader()
	switch nearest := q.nearest(l.candidates, own); {
	case led && same(leader, own): // also after a claim whose reply was lost
		next.Complete = true
		return next, nil
	case nearest != nil:
		next.Ahead = []eldest.Candidate{*nearest}
		return next, nil
	case led:
		next.Ahead = []eldest.Candidate{leader}
		return next, nil
	}
	return l.claim(ctx, kv, e, next)
}

// nearest returns the last one of the candidates before own, or nil.
func (q Queue) nearest(candidates []eldest.Candidate, own eldest.Candidate) *eldest.Candidate {
	before := q.Before
	if before == nil {
		before = YoungestFirst
	}
	var nearest *eldest.Candidate
	for i, c := range candidates {
		if !same(c, own) && before(c, own) && (nearest == nil || before(*nearest, c)) {
			nearest = &candidates[i]
		}
	}
	return nearest
}

func same(a, b eldest.Candidate) bool { return a.Key == b.Key && a.Token == b.Token }

// LeaderOf returns the candidate in the claim, without its value, or an error that wraps
// eldest.ErrNoLeader. It sends one request.
func LeaderOf(ctx context.Context, kv clientv3.KV, election string) (eldest.Leader, error) {
	l, err := read(ctx, kv, election)
	if err != nil {
		return eldest.Leader{}, err
	}
	leader, led := l.leader()
	if !led {
		return eldest.Leader{}, fmt.Errorf("%w of %q", eldest.ErrNoLeader, election)
	}
	return leader, nil
}

// candidate converts a key of the queue.
func candidate(election string, kv *mvccpb.KeyValue) (eldest.Candidate, error) {
	lease, err := keys.Parse(election, string(kv.Key))
	return eldest.Candidate{Key: string(kv.Key), Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision}, err
}
