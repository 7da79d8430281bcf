package concurrency

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
)

// ownEnd blocks until the life of the own key that token names has ended, and returns why
// it did; nil if ctx ended before, or if etcd does not let us watch, and nothing is known.
//
// Only its deletion counts. Programs may write into their key by hand, which etcd's
// package has nothing against; a put that names no lease takes the key from the session's,
// and it is bound again.
func (k *slot) ownEnd(ctx context.Context, token eldest.Token, known int64) error {
	life := watch.Life{Key: k.key, Token: token, Lease: int64(k.session.id), Known: known}
	for {
		at, release, err := k.session.source.Gone(ctx, life)
		overwritten := errors.Is(err, watch.ErrOverwritten)
		if overwritten {
			life.Lease, err = k.bind(ctx, token)
			life.Known = at
		}
		release()
		switch {
		case err != nil || ctx.Err() != nil:
			return nil //nolint:nilerr // as documented: nothing is known
		case !overwritten:
			return fmt.Errorf("%w: %q", eldest.ErrDeposed, k.key)
		}
	}
}

// bind binds a life of the key to the session's lease again, where it is bound to none: it
// would outlive the session, and nobody would lead after it. It returns the lease that the
// key has to stay bound to from here on; 0, for any, where another session has taken it over
// (ResumeElection), or etcd refuses.
func (k *slot) bind(ctx context.Context, token eldest.Token) (lease int64, err error) {
	own := k.session.id
	err = policy(k.session.client).Until(ctx, func(once context.Context) error {
		resp, err := k.session.client.Txn(once).
			If(clientv3.Compare(clientv3.CreateRevision(k.key), "=", int64(token)), clientv3.Compare(clientv3.LeaseValue(k.key), "=", 0)).
			Then(clientv3.OpPut(k.key, "", clientv3.WithIgnoreValue(), clientv3.WithLease(own))).
			Else(clientv3.OpGet(k.key)).
			Commit()
		if err != nil {
			return err
		}
		lease = int64(own)
		if !resp.Succeeded {
			for _, found := range resp.Responses[0].GetResponseRange().Kvs {
				if found.Lease != lease {
					lease = 0
				}
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return 0, nil
	}
	return lease, err
}

// lead has the session end when somebody else takes the key of a leader away: its
// successor leads at that moment, and Done is all that this API has to say so. proof is a
// revision at which the key was there. A session that is not renewed here has ended, and
// nothing to say; nor has one that has resigned by now.
func (k *slot) lead(token eldest.Token, proof int64) {
	s := k.session
	s.mu.Lock()
	if s.released || s.failed != nil || k.watched[token] != nil || k.stands[token] == 0 {
		s.mu.Unlock()
		return
	}
	watching, unwatch := context.WithCancel(life(s.client))
	k.watched[token] = unwatch
	s.mu.Unlock()
	k.background(true, func(ctx context.Context) {
		defer unwatch()
		defer context.AfterFunc(ctx, unwatch)()
		if err := k.ownEnd(watching, token, proof); k.ownEnded(watching, token) && err != nil {
			s.fail(err)
		}
	})
}

// ownEnded reports whether the end of a life is news. What we have taken away ourselves is
// none; but while a removal is under way that is not certain, and when it fails the caller
// may believe that it leads.
func (k *slot) ownEnded(watching context.Context, token eldest.Token) (news bool) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for k.removing[token] != nil {
		known := k.removing[token]
		s.mu.Unlock()
		_ = retry.Wait(watching, known) // which ends with the removal that succeeds
		s.mu.Lock()
		if watching.Err() != nil {
			break
		}
	}
	news = k.watched[token] != nil
	delete(k.watched, token)
	return news
}
