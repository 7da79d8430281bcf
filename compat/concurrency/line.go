package concurrency

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// line is the queue behind an election or a mutex, as one session sees it. The name is
// any that etcd's package takes, slashes and the empty one included: what package keys
// refuses is not the layout of such names but their nesting, and since only keys of a
// candidate's shape count here, "svc" does not see those of "svc/a".
type line struct {
	session *Session
	name    string
}

func (l line) key() string { return keys.Candidate(l.name, int64(l.session.id)) }

func (l line) entry(value string) txn.Entry {
	return txn.Entry{Election: l.name, Lease: int64(l.session.id), Value: []byte(value)}
}

var queue txn.Queue = txn.ByCreateRevision{}

// entering is Queue.Enter or Queue.EnterAlone.
type entering func(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error)

// stay is one life of a session's key, as an election or a mutex stands on it.
type stay struct {
	line  line
	slot  *slot
	token eldest.Token
	place txn.Place
	// registered is the header of the answer to the registration, latest that of the last
	// answer.
	registered, latest *pb.ResponseHeader
}

// enter registers, and returns when the outcome is known, or with ctx. A lost reply is no
// failure: the request is sent again and finds its own key. On error nothing is left
// behind, or is removed as soon as it turns up. slot is that of the line's key.
func (l line) enter(ctx context.Context, slot *slot, value string, how entering) (*stay, error) {
	s := l.session
	if s.lost() != nil {
		// As etcd says of a lease that is gone, and programs know to make a new session
		// by. Why it was lost is the cause of its context.
		return nil, rpctypes.ErrLeaseNotFound
	}
	live, end := s.during(ctx)
	defer end(nil)
	if err := slot.take(live); err != nil {
		return nil, err
	}
	defer func() { <-slot.turn }()
	rec := &recorder{KV: s.client}
	var place txn.Place
	unsure := 0
	enter := func() error {
		return policy(s.client).Until(live, func(once context.Context) (err error) {
			place, err = how(once, rec, l.entry(value))
			if errors.Is(err, eldest.ErrOutcomeUnknown) {
				unsure++
			}
			if rpcerr.Is(err, rpctypes.ErrLeaseNotFound) || settled(err) {
				return ask.Final(err)
			}
			return err
		})
	}
	err := enter()
	for err == nil && s.past.Doomed(place.Token) {
		// The request that removes it may be on its way: it goes first.
		slot.account(place)
		if err = slot.end(live, &recorder{KV: s.client}, place.Token); err == nil {
			err = enter()
		}
	}
	slot.owe(value, unsure)
	if err != nil {
		if unsure > 0 {
			slot.purge(value)
		}
		return nil, err
	}
	slot.enter(place)
	return &stay{line: l, slot: slot, token: place.Token, place: place, registered: rec.header, latest: rec.header}, nil
}

// settled reports whether asking the queue again would give the same answer.
func settled(err error) bool {
	return errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrInvalid) ||
		errors.Is(err, eldest.ErrNotElected) || errors.Is(err, eldest.ErrForeignKey)
}

// adopt gives a key that was there already the value, if it has another one, and if nobody
// has given it one since: an attempt that was given up may arrive after a later proclaim.
func (st *stay) adopt(ctx context.Context, value string) error {
	if !st.place.Adopted || string(st.place.Value) == value {
		return nil
	}
	s := st.slot.session
	live, end := s.during(ctx)
	defer end(nil)
	return policy(s.client).Until(live, func(once context.Context) error {
		err := st.proclaim(once, s.client, value, st.place.Revision)
		switch {
		case errors.Is(err, errSuperseded):
			return nil // by an attempt of this one, or by what may count as later
		case settled(err):
			return ask.Final(err)
		}
		return err
	})
}

// await waits until nobody older stands in the line, and returns nil only on the proof:
// at one revision the own key was there and nobody older was. It ends with ctx (its
// cause), with the loss of the session, and when somebody takes the own key away.
func (st *stay) await(ctx context.Context) error {
	s := st.slot.session
	waiting, end := s.during(ctx)
	defer end(nil)
	if st.place.Unknown() {
		if err := st.look(waiting, 0); err != nil {
			return st.why(waiting, err)
		}
	}
	if !st.place.First() {
		known := st.place.Revision
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := st.slot.ownEnd(waiting, st.token, known); err != nil {
				end(err)
			}
		}()
		defer func() {
			end(nil)
			<-over
		}()
	}
	for !st.place.First() {
		if err := st.nearer(waiting); err != nil {
			return st.why(waiting, err)
		}
	}
	// The proof is a fact about etcd; that this side knows its lease to live is another.
	return s.lost()
}

// why prefers the reason for which the wait was ended to what came of that.
func (st *stay) why(waiting context.Context, err error) error {
	if cause := context.Cause(waiting); cause != nil {
		return cause
	}
	return err
}

// nearer waits for the end of the next older key and finds the place after that, which is
// no victory: it may have been a waiter's.
func (st *stay) nearer(ctx context.Context) error {
	at := int64(0)
	if len(st.place.Ahead) > 0 {
		predecessor := st.place.Ahead[0]
		gone, release, err := st.slot.session.source.Gone(ctx, watch.Life{Key: predecessor.Key, Token: predecessor.Token})
		defer release() // after the next request, not before it
		if err != nil {
			return err
		}
		if !st.place.Complete {
			st.place.Ahead = st.place.Ahead[:1]
		}
		st.place.Ahead = st.place.Ahead[1:]
		at = gone
	}
	return st.look(ctx, at)
}

// look finds the place anew, as of revision at where a member can answer for it, else as
// of now: the line ahead only ever gets shorter.
func (st *stay) look(ctx context.Context, at int64) error {
	s := st.slot.session
	rec := &recorder{KV: s.client}
	err := policy(s.client).Until(ctx, func(once context.Context) error {
		place, err := queue.Ahead(once, rec, st.line.entry(""), st.place, at)
		if at > 0 && txn.Repeatable(err) {
			at = 0
			place, err = queue.Ahead(once, rec, st.line.entry(""), st.place, at)
		}
		switch {
		case err == nil:
			st.place, st.latest = place, rec.header
		case settled(err):
			return ask.Final(err)
		}
		return err
	})
	if errors.Is(err, eldest.ErrDeposed) {
		return fmt.Errorf("%w: %q", err, st.slot.key)
	}
	return err
}

// quit gives the place up, and has the key taken away if nobody else of the session
// stands on it: at once where etcd answers, in the background where it does not.
func (st *stay) quit() {
	if st.slot.leave(st.token) {
		patience, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		st.slot.forsake(patience, st.token)
	}
}

// same reports whether two stand on the same life of the key.
func (st *stay) same(other *stay) bool {
	return st != nil && other != nil && st.slot.key == other.slot.key && st.token == other.token
}
