package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Key returns the key of the claim. It is in the range of no election, because it has no '/'.
func Key(election string) string { return election + ".claim" }

// line is an election as it was at one revision.
type line struct {
	revision   int64
	candidates []eldest.Candidate
	foreign    []string
	// claimed is the candidate in the claim, zero if there is none; mod is the mod revision of the
	// claim, 0 if there is no claim.
	claimed eldest.Candidate
	mod     int64
}

// read reads the claim and the queue, in one request.
func read(ctx context.Context, kv clientv3.KV, election string) (line, error) {
	begin, end := keys.Range(election)
	resp, err := kv.Txn(ctx).Then(
		clientv3.OpGet(Key(election)),
		clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return line{}, err
	}
	l := line{revision: resp.Header.Revision}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if c, err := candidate(election, kv); err == nil {
			l.candidates = append(l.candidates, c)
		} else {
			l.foreign = append(l.foreign, string(kv.Key))
		}
	}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		l.mod = kvs[0].ModRevision
		token, key, _ := strings.Cut(string(kvs[0].Value), " ")
		if n, err := strconv.ParseInt(token, 10, 64); err == nil {
			l.claimed = eldest.Candidate{Key: key, Token: eldest.Token(n)}
		}
	}
	return l, nil
}

// stands reports whether a candidate is in the queue, with its token.
func (l line) stands(c eldest.Candidate) bool {
	return slices.ContainsFunc(l.candidates, func(other eldest.Candidate) bool { return same(c, other) })
}

// leader returns the candidate in the claim, if it is in the queue with this token.
func (l line) leader() (eldest.Leader, bool) {
	i := slices.IndexFunc(l.candidates, func(c eldest.Candidate) bool { return same(c, l.claimed) })
	if i < 0 {
		return eldest.Leader{}, false
	}
	return l.candidates[i], true
}

var errMoved = errors.New("the queue has changed since it was read")

// claim makes e the leader. It must be called only if l has no leader, and no candidate before e.
//
// If another candidate was first, or the queue has grown since it was read, the error is temporary:
// the election repeats the call after a pause.
func (l line) claim(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Position) (txn.Position, error) {
	key, claim := e.Key(), Key(e.Election)
	begin, end := keys.Range(e.Election)
	resp, err := kv.Txn(ctx).
		If(
			clientv3.Compare(clientv3.ModRevision(claim), "=", l.mod),
			clientv3.Compare(clientv3.CreateRevision(key), "=", int64(p.Token)),
			clientv3.Compare(clientv3.CreateRevision(begin), "<", l.revision+1).WithRange(end)).
		Then(clientv3.OpPut(claim, strconv.FormatInt(int64(p.Token), 10)+" "+key, clientv3.WithLease(clientv3.LeaseID(e.Lease)))).
		Commit()
	switch {
	case err != nil:
		return txn.Position{}, txn.Outcome(err)
	case !resp.Succeeded:
		return txn.Position{}, errMoved
	}
	p.Revision, p.Complete = resp.Header.Revision, true
	return p, nil
}

// Fence returns the revision of the claim with which a leader won: a store outside etcd must
// compare it in place of the token (G2). It grows from tenure to tenure and is the same within a
// tenure. Fence sends one request; the error wraps eldest.ErrNotLeading if the claim has another
// candidate.
func Fence(ctx context.Context, kv clientv3.KV, l *election.Leadership) (eldest.Token, error) {
	now, err := read(ctx, kv, l.Election())
	if err != nil {
		return 0, err
	}
	if now.claimed.Key != l.Key() || now.claimed.Token != l.Token() {
		return 0, fmt.Errorf("%w: the claim on %q belongs to %q with token %d", eldest.ErrNotLeading, l.Election(), now.claimed.Key, now.claimed.Token)
	}
	return eldest.Token(now.mod), nil
}
