package loop

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// The rules of keys that other sessions of the lease may have as well (User.Shared). Such a session
// may be in another process, and its key cannot be distinguished from ours in etcd.
//
//   - A token has no holder. A key that is found keeps its value: its user replaces the value.
//   - A key that appears late is deleted only if it can hardly belong to another session: at most
//     as many keys as registrations are missing, with the value of those registrations, never
//     written to since, within the time for which a request can be under way.
//   - A key that a user puts without a lease is bound to the session's lease again, or it would
//     outlive all sessions. A key that cannot be watched is held all the same.

// underWay is how long a request may be under way after its sender has given it up: longer than a
// kernel keeps data of a closed connection that was never acknowledged.
const underWay = 2 * time.Minute

// shared is what a candidate records about its key because of other sessions. The session's mutex
// guards it.
type shared struct {
	// owed counts, by value, the registrations that may be carried out late.
	owed map[string]int
	// sent is the value of the registration under way, and since is when the last one was owed.
	sent  string
	since time.Time
	// suspect is the life that was taken for an owed registration, and value its value.
	suspect eldest.Token
	value   string
	// moved is the life that may be bound to any lease. At the revision seen the life rebound
	// existed, bound as it is now.
	moved, rebound eldest.Token
	seen           int64
}

// allowedShared is allowed, for a key that other sessions may have.
func (c *Candidate) allowedShared(e core.Event, place *txn.Position) core.Event {
	switch e.Kind {
	case core.Registered:
		c.doomed(e.Token)
		if place != nil && place.Adopted {
			c.account(string(place.Value))
		}
	case core.Unanswered, core.Refused:
		if c.state.Phase == core.Entering && (e.Kind == core.Unanswered || errors.Is(e.Err, eldest.ErrOutcomeUnknown)) {
			c.owe(c.shared.sent)
		}
	case core.Looked, core.KeyAppeared:
		if c.state.Token == 0 && e.Token > 0 && e.Token == c.shared.suspect {
			c.account(c.shared.value)
		}
	case core.KeyUnsafe:
		if errors.Is(e.Err, watch.ErrOverwritten) {
			c.rebind()
		}
		if !errors.Is(e.Err, eldest.ErrClosed) {
			e.Kind = none
		}
	default:
	}
	return e
}

// owe notes a registration of unknown outcome.
func (c *Candidate) owe(value string) {
	if c.shared.owed == nil {
		c.shared.owed = make(map[string]int)
	}
	c.shared.owed[value]++
	c.shared.since = time.Now()
}

// account notes that an owed registration with this value was found.
func (c *Candidate) account(value string) {
	switch c.shared.owed[value] {
	case 0:
		return
	case 1:
		delete(c.shared.owed, value)
	default:
		c.shared.owed[value]--
	}
	c.state.Owed = len(c.shared.owed) > 0
}

// late reports whether a key may be an owed registration. It is called without the mutex.
func (c *Candidate) late(kv *mvccpb.KeyValue) bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	token, value := eldest.Token(kv.CreateRevision), string(kv.Value)
	if time.Since(c.shared.since) > underWay {
		return false
	}
	if kv.Version != 1 || c.shared.owed[value] == 0 {
		return false
	}
	c.shared.suspect, c.shared.value = token, value
	return true
}

// bound returns the lease that the key must stay bound to; 0: any.
func (c *Candidate) bound() int64 {
	if c.user.Shared && c.shared.moved == c.state.Token {
		return 0
	}
	return c.session.lease
}

// known returns a revision at which the key existed, in the life with this token, and bound as it
// is.
func (c *Candidate) known(token eldest.Token) int64 {
	known := max(c.state.Position.Revision, int64(token))
	if c.user.Shared && c.shared.rebound == token {
		known = max(known, c.shared.seen)
	}
	return known
}

// rebind binds the key to the lease again if it is bound to none, and then watches it again. A key
// that another session has bound to its own lease is left as it is.
func (c *Candidate) rebind() {
	token, user, key, lease := c.state.Token, c.user, c.name.Key, clientv3.LeaseID(c.session.lease)
	c.own.end()
	c.own = watched{token, c.follow(func(ctx context.Context, _ func(core.Event)) {
		moved, gone, at := false, false, int64(0)
		err := user.Policy("bind key").Until(ctx, func(once context.Context) error {
			resp, err := user.KV.Txn(once).
				If(clientv3.Compare(clientv3.CreateRevision(key), "=", int64(token)), clientv3.Compare(clientv3.LeaseValue(key), "=", 0)).
				Then(clientv3.OpPut(key, "", clientv3.WithIgnoreValue(), clientv3.WithLease(lease))).
				Else(clientv3.OpGet(key)).
				Commit()
			if err == nil {
				at = resp.Header.Revision
			}
			if err != nil || resp.Succeeded {
				return err
			}
			found := resp.Responses[0].GetResponseRange().Kvs
			gone = len(found) == 0 || found[0].CreateRevision != int64(token)
			moved = !gone && found[0].Lease != int64(lease)
			return nil
		})
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		switch {
		case ctx.Err() != nil || c.own.token != token:
		case gone: // a watch from this revision on would not show it
			c.Do(core.Event{Kind: core.KeyDeleted, Revision: at})
		default:
			if moved || err != nil {
				c.shared.moved = token
			}
			c.shared.rebound, c.shared.seen = token, at
			c.own.end()
			c.watch(c.state.Watches())
		}
	})}
}
