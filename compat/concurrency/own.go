package concurrency

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
)

// ownEnd blocks until the life of the own key that token names has ended, and returns why
// it did; nil if ctx ended before, or if etcd does not let us watch, and nothing is known.
//
// Only its deletion counts. Programs may write into their key by hand, which etcd's
// package has nothing against.
func (k *slot) ownEnd(ctx context.Context, token eldest.Token, known int64) error {
	_, release, err := k.session.source.Gone(ctx, watch.Life{Key: k.key, Token: token, Known: known})
	release()
	if err != nil || ctx.Err() != nil {
		return nil //nolint:nilerr // as documented: nothing is known
	}
	return fmt.Errorf("%w: %q", eldest.ErrDeposed, k.key)
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
