package concurrency

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// underWay is how long a request whose sender has given up may be on its way: longer than
// a kernel keeps data of a closed connection that nobody acknowledges.
const underWay = 2 * time.Minute

// owe notes registrations of unknown outcome. They may be there, or arrive when nobody
// waits for them any more, and would then hold up the queue for as long as the session
// lives. So each life of the key that may be one of them, and that nobody stands on, is
// removed, until all are accounted for or too long ago, or the session ends.
//
// Other sessions may have the same lease, and then the same key: etcd's own servers make
// one for each request. So only what cannot well be another's is taken: as many lives as
// registrations are missing, with the value that those had, never written to since.
func (k *slot) owe(value string, registrations int) {
	if registrations == 0 {
		return
	}
	s := k.session
	s.mu.Lock()
	k.owed[value] += registrations
	k.overdue = time.Now().Add(underWay)
	already := k.sweeping
	k.sweeping = true
	bound := !s.released
	s.mu.Unlock()
	if !already {
		k.background(bound, k.sweep)
	}
}

// paid accounts for a registration that has turned up as a life of the key, once. The
// caller holds the session's mu.
func (k *slot) paid(life eldest.Token, value string) {
	if life <= k.accounted || k.owed[value] == 0 {
		return
	}
	k.accounted = life
	if k.owed[value]--; k.owed[value] <= 0 {
		delete(k.owed, value)
	}
}

// account accounts for a life that a registration has found, if nobody stands on it: it
// came from a registration whose outcome was unknown.
func (k *slot) account(place txn.Place) {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	if place.Adopted && k.stands[place.Token] == 0 {
		k.paid(place.Token, string(place.Value))
	}
}

// sweep removes what is owed as it turns up. What etcd refuses meanwhile is tried again.
func (k *slot) sweep(ctx context.Context) {
	s := k.session
	for failures := 0; ; failures++ {
		s.mu.Lock()
		left := time.Until(k.overdue)
		if ctx.Err() != nil || len(k.owed) == 0 || left <= 0 {
			clear(k.owed)
			k.sweeping = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		looking, cancel := context.WithTimeout(ctx, left)
		ghost, err := k.ghost(looking)
		late := looking.Err() != nil
		cancel()
		if late {
			continue
		}
		if err != nil {
			_ = retry.Sleep(ctx, policy(s.client).Backoff(failures))
			continue
		}
		failures = -1
		token := eldest.Token(ghost.CreateRevision)
		removed, err := k.clear(ctx, token)
		if err != nil {
			k.forsake(looking, token) // looking has ended: it is removed in the background
		}
		if removed || err != nil {
			s.mu.Lock()
			k.paid(token, string(ghost.Value))
			s.mu.Unlock()
		}
	}
}

// haunts reports whether a life of the key may be a registration that is owed. One that is
// being registered at this moment may look like that; clear looks again when its turn has
// come.
func (k *slot) haunts(kv *mvccpb.KeyValue) bool {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	return kv.Lease == int64(k.session.id) && kv.Version == 1 && k.owed[string(kv.Value)] > 0 &&
		k.stands[eldest.Token(kv.CreateRevision)] == 0
}

// purge removes at once what a registration of unknown outcome has left, if etcd answers
// soon: most often it has arrived, and only its reply is missing, so that the key is gone
// when the campaign returns. What comes later is the sweep's. The caller has the turn.
func (k *slot) purge(value string) {
	s := k.session
	ctx, cancel := context.WithTimeout(life(s.client), farewell)
	defer cancel()
	_ = policy(s.client).Until(ctx, func(once context.Context) error { // else the sweep does
		resp, err := s.client.Get(once, k.key)
		if err != nil || len(resp.Kvs) == 0 || string(resp.Kvs[0].Value) != value || !k.haunts(resp.Kvs[0]) {
			return err
		}
		life := eldest.Token(resp.Kvs[0].CreateRevision)
		if err := k.end(once, &recorder{KV: s.client}, life); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		k.paid(life, value)
		return nil
	})
}

// ghost waits for a life of the key that haunts it.
func (k *slot) ghost(ctx context.Context) (found *mvccpb.KeyValue, err error) {
	haunts := func(kv *mvccpb.KeyValue) bool {
		found = kv
		return k.haunts(kv)
	}
	watching, release := context.WithCancel(ctx)
	defer release()
	err = k.session.source.Follow(watching, watch.Target{
		Key:      k.key,
		Snapshot: func(resp *clientv3.GetResponse) bool { return len(resp.Kvs) > 0 && haunts(resp.Kvs[0]) },
		Change: func(_ int64, events []*clientv3.Event) bool {
			return events[0].Type == mvccpb.PUT && haunts(events[0].Kv)
		},
		// Late requests come from networks in which streams fall silent.
		Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
			return clientv3.OpGet(k.key), func(answer clientv3.OpResponse) bool {
				kvs := answer.Get().Kvs
				return len(kvs) == 0 || !k.haunts(kvs[0])
			}
		},
	})
	return found, err
}
