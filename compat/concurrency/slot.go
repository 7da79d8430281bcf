package concurrency

import (
	"context"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

// slot is what a session knows of one of its keys. Any number of elections and mutexes of
// one session may stand on one key (a second campaign on a session is a proclaim), so it
// is counted who does: the key is taken away for the last one that gives up, and for
// whoever resigns or unlocks.
type slot struct {
	session *Session
	key     string
	// turn is held while the key is registered or removed: nobody adopts a key that is
	// about to go.
	turn chan struct{}

	// Guarded by session.mu.
	refs int
	// stands counts who stands on each life of the key.
	stands map[eldest.Token]int
	// watched are the lives whose end by another hand ends the session.
	watched map[eldest.Token]context.CancelFunc
	// removing are the lives that are being resigned: closed when the outcome is known.
	removing map[eldest.Token]chan struct{}
	// owed counts, by value, the registrations that may arrive still; sweeping says that
	// they are looked out for, until overdue; accounted is the latest life of which it is
	// known whether it was one: what is owed still comes later.
	owed      map[string]int
	overdue   time.Time
	sweeping  bool
	accounted eldest.Token
}

// slot returns the slot of a key; put must be called.
func (s *Session) slot(key string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.slots[key]
	if k == nil {
		k = &slot{
			session: s, key: key, turn: make(chan struct{}, 1),
			stands: make(map[eldest.Token]int), watched: make(map[eldest.Token]context.CancelFunc),
			removing: make(map[eldest.Token]chan struct{}), owed: make(map[string]int),
		}
		s.slots[key] = k
	}
	k.refs++
	return k
}

// put gives a slot back. One of which nothing is left is forgotten: a session may lock a
// million names, one after another.
func (k *slot) put() {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	k.refs--
	if k.refs == 0 && len(k.stands) == 0 && len(k.watched) == 0 && !k.sweeping {
		delete(k.session.slots, k.key)
	}
}

// take waits for the turn. It is given back by a receive from turn.
func (k *slot) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter counts one more who stands on a life of the key, as it was found. One that was
// there already, and on which nobody stood, came from a registration whose outcome was
// unknown. One that was not is none of those, also when the sweep hears of it late, from a
// slow watch, and finds nobody on it any more.
func (k *slot) enter(place txn.Place) {
	k.account(place)
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	k.accounted = max(k.accounted, place.Token)
	k.stands[place.Token]++
}

// join counts one more who stands on a life that was entered.
func (k *slot) join(token eldest.Token) {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	k.stands[token]++
}

// leave counts one less, and reports whether it was the last one.
func (k *slot) leave(token eldest.Token) (last bool) {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	if k.stands[token] == 0 {
		return false // somebody has resigned for all
	}
	k.stands[token]--
	if k.stands[token] > 0 {
		return false
	}
	k.forget(token)
	return true
}

// forget drops what is known of a life. The caller holds the session's mu.
func (k *slot) forget(token eldest.Token) {
	delete(k.stands, token)
	if unwatch := k.watched[token]; unwatch != nil {
		unwatch()
		delete(k.watched, token)
	}
}

// free reports whether nobody stands on a life.
func (k *slot) free(token eldest.Token) bool {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	return k.stands[token] == 0
}

// resign takes a life of the key away, whoever stands on it. On error it may be there
// still, and resign may be called again.
//
// The life is watched on meanwhile, because an error leaves its caller a leader: if the
// key is gone although nobody confirmed that, the session ends. See ownEnded.
func (k *slot) resign(ctx context.Context, rec *recorder, token eldest.Token) error {
	if err := k.take(ctx); err != nil {
		return err
	}
	defer func() { <-k.turn }()
	err := k.end(ctx, rec, token)
	if rpcerr.Definite(err) {
		k.session.past.Spare(token) // its caller leads on
	}
	return err
}

// end removes a life of the key, whoever stands on it. The caller has the turn. From now on
// nobody adopts it, in no session of the lease: the request may be on its way.
func (k *slot) end(ctx context.Context, rec *recorder, token eldest.Token) error {
	known := make(chan struct{})
	defer close(known)
	k.session.mu.Lock()
	k.removing[token] = known
	k.session.mu.Unlock()
	k.session.past.Doom(token)
	err := k.remove(ctx, rec, token)
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	delete(k.removing, token)
	if err == nil {
		k.session.past.Spare(token)
		k.forget(token) // what we have done ourselves is no news
	}
	return err
}

// remove deletes a life of the key, until that is confirmed, ctx ends or etcd refuses.
func (k *slot) remove(ctx context.Context, rec *recorder, token eldest.Token) error {
	return policy(k.session.client).Until(ctx, func(once context.Context) error {
		return txn.Leave(once, rec, k.key, token)
	})
}

// forsake takes a life of the key away on which nobody stands any more. It waits for that
// until patience ends; after that it goes on in the background, however often etcd refuses.
func (k *slot) forsake(patience context.Context, token eldest.Token) {
	gone := make(chan struct{})
	k.background(false, func(ctx context.Context) {
		defer close(gone)
		_ = policy(k.session.client).Insist(ctx, func(once context.Context) error {
			_, err := k.clear(once, token)
			return err
		})
	})
	_ = retry.Wait(patience, gone)
}

// clear removes a life of the key unless somebody stands on it by now.
func (k *slot) clear(ctx context.Context, token eldest.Token) (removed bool, err error) {
	if err := k.take(ctx); err != nil {
		return false, err
	}
	defer func() { <-k.turn }()
	if !k.free(token) {
		return false, nil
	}
	err = k.end(ctx, &recorder{KV: k.session.client}, token)
	return err == nil, err
}

// background is the session's, with the slot kept.
func (k *slot) background(bound bool, f func(ctx context.Context)) {
	kept := k.session.slot(k.key)
	k.session.background(bound, func(ctx context.Context) {
		defer kept.put()
		f(ctx)
	})
}
