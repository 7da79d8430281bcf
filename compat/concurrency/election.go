package concurrency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// The errors of elections.
var (
	// ErrElectionNotLeader is returned by Proclaim when this election does not lead, or
	// not any more. What ends a campaign before its win wraps it.
	ErrElectionNotLeader = errors.New("election: not leader")
	// ErrElectionNoLeader is returned by Leader when nobody stands.
	ErrElectionNoLeader = errors.New("election: no leader")
)

// Election is an election as one session takes part in it. Made by NewElection or
// ResumeElection. All methods are safe for concurrent use.
type Election struct {
	line line

	mu sync.Mutex
	// stay is the key with which this election stands or leads; nil if it does neither. It
	// is counted in the slot, as is each campaign that is under way.
	stay *stay
	// won says that the stay leads, calls how many campaigns are under way on it: the last
	// of them that fails gives it up, unless another one has won.
	won   bool
	calls int
	key   string
	rev   int64
	hdr   *pb.ResponseHeader
}

// NewElection returns the election of the keys under pfx + "/". It sends nothing.
func NewElection(s *Session, pfx string) *Election {
	return &Election{line: line{s, pfx}}
}

// ResumeElection returns an election that is led already, with leaderKey, of create
// revision leaderRev, by s. Where s has not the key's lease (see WithLease), the first
// Proclaim binds the key to that of s. It sends nothing; the key is watched, as that of
// other leaders, from the first Proclaim on.
//
// pfx is that of NewElection. One with the slash that etcd's package needs here is
// understood as well, where leaderKey shows that it is meant so.
func ResumeElection(s *Session, pfx string, leaderKey string, leaderRev int64) *Election {
	if name, ok := strings.CutSuffix(pfx, "/"); ok {
		if _, err := keys.Parse(name, leaderKey); err == nil {
			pfx = name
		}
	}
	e := &Election{line: line{s, pfx}, key: leaderKey, rev: leaderRev}
	if leaderKey != "" && leaderRev > 0 {
		slot := s.slot(leaderKey)
		defer slot.put()
		slot.join(eldest.Token(leaderRev))
		e.stay, e.won = &stay{line: e.line, slot: slot, token: eldest.Token(leaderRev)}, true
	}
	return e
}

// Campaign stands for election with a value and blocks until this session leads. Where it
// leads or stands already, by this election or another one with the same prefix, the
// campaign takes that place and proclaims the value, unless a later one is there by then.
//
// When ctx ends before the win it returns ctx's error, and the key is gone; where etcd does
// not say so within a second, it is removed in the background. So it is after every other
// error: ErrElectionNotLeader, wrapped with the reason, when somebody takes the key away or
// the session is lost meanwhile, and what etcd refused. Of a session that was lost before it
// is rpctypes.ErrLeaseNotFound, bare. While etcd is away it waits. A place that was taken
// before the call, or by another call, is kept.
func (e *Election) Campaign(ctx context.Context, val string) error {
	slot := e.line.session.slot(e.line.key())
	defer slot.put()
	st, err := e.line.enter(ctx, slot, val, queue.Enter)
	if err != nil {
		return e.failed(ctx, err)
	}
	defer st.quit() // for this call; the election's own stay is counted besides
	e.stand(st)
	if err = st.adopt(ctx, val); err == nil {
		err = st.await(ctx)
	}
	if err != nil {
		e.giveUp(st)
		return e.failed(ctx, err)
	}
	if !e.win(st) {
		return fmt.Errorf("%w: it has resigned", ErrElectionNotLeader)
	}
	slot.lead(st.token, st.place.Revision)
	return nil
}

// stand makes the stay the present one, for a call that campaigns on it.
func (e *Election) stand(st *stay) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !st.same(e.stay) {
		st.slot.join(st.token)
		if e.stay != nil {
			e.stay.slot.leave(e.stay.token) // a life that is over
		}
		e.won, e.calls = false, 0
	}
	e.stay = st
	e.calls++
}

// giveUp ends the part of a call that has failed in the present stay, and the stay with the
// last one.
func (e *Election) giveUp(st *stay) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !st.same(e.stay) {
		return
	}
	if e.calls--; e.calls == 0 && !e.won {
		e.drop()
		st.slot.leave(st.token) // not the last one: the call itself is counted
	}
}

// step gives the stay up, unless another one is the present one by now.
func (e *Election) step(st *stay) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !st.same(e.stay) {
		return
	}
	won := e.won
	e.drop()
	if !won {
		// The count of a leader stays, and with it the watch of its key, by which the
		// session hears of the loss.
		st.slot.leave(st.token)
	}
}

// drop forgets the present stay. The caller holds mu.
func (e *Election) drop() { e.stay, e.key, e.won, e.calls = nil, "", false, 0 }

// win makes the stay a leader's, unless it has resigned meanwhile.
func (e *Election) win(st *stay) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !st.same(e.stay) {
		return false
	}
	e.won = true
	e.calls--
	e.key, e.rev, e.hdr = st.slot.key, int64(st.token), st.registered
	return true
}

// failed is what a campaign returns.
func (e *Election) failed(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrSessionLost)) {
		return fmt.Errorf("%w: %w", ErrElectionNotLeader, err)
	}
	return plain(ctx, e.line.session.client, err)
}

// Proclaim replaces the value, in one request, of the leader or, during a campaign, of the
// waiting candidate. It blocks until etcd has answered, ctx ends or the session is lost.
// When the leadership is lost it returns ErrElectionNotLeader, each time. The key is bound
// to the session's lease by it, also one that was resumed and had another lease.
func (e *Election) Proclaim(ctx context.Context, val string) error {
	st := e.present()
	if st == nil {
		return ErrElectionNotLeader
	}
	s := e.line.session
	if s.lost() != nil {
		e.step(st)
		return ErrElectionNotLeader
	}
	live, end := s.during(ctx)
	defer end(nil)
	rec := &recorder{KV: s.client}
	// Once: an attempt that is given up may arrive late, even after a later proclaim.
	err := st.proclaim(live, rec, val, 0)
	switch {
	case err == nil:
		e.mu.Lock()
		e.hdr = rec.header
		leads := e.won && st.same(e.stay)
		e.mu.Unlock()
		if leads { // which one that was resumed has shown only now
			st.slot.lead(st.token, rec.header.Revision)
		}
		return nil
	case errors.Is(err, eldest.ErrDeposed), ctx.Err() == nil && s.lost() != nil:
		e.step(st)
		return ErrElectionNotLeader
	}
	return plain(ctx, s.client, err)
}

// Resign takes the key away, of a leader or, during a campaign, of the waiting candidate,
// and the next one leads. It blocks until etcd has confirmed that, for at most the session's
// TTL, or until ctx ends. On error it may lead on, and it can be called again; if the key
// turns out to be gone, the session of a leader ends. An election that does not stand has
// nothing to resign.
func (e *Election) Resign(ctx context.Context) error {
	st := e.present()
	if st == nil {
		return nil
	}
	s := e.line.session
	slot := s.slot(st.slot.key)
	defer slot.put()
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.opts.ttl)*time.Second)
	defer cancel()
	rec := &recorder{KV: s.client}
	if err := slot.resign(limited, rec, st.token); err != nil {
		return plain(ctx, s.client, err)
	}
	e.step(st)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hdr = rec.header
	return nil
}

func (e *Election) present() *stay {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stay
}

// Leader asks who leads, and returns the leader's key as the only one of the response. It
// blocks until etcd has answered or ctx ends. Nobody: ErrElectionNoLeader.
func (e *Election) Leader(ctx context.Context) (*clientv3.GetResponse, error) {
	client := e.line.session.client
	var resp *clientv3.GetResponse
	err := policy(client).Until(ctx, func(once context.Context) (err error) {
		resp, err = first(once, client, e.line.name)
		return err
	})
	if err != nil {
		return nil, plain(ctx, client, err)
	}
	if len(resp.Kvs) == 0 {
		return nil, ErrElectionNoLeader
	}
	return resp, nil
}

// Key returns the leader's key while this election leads, as far as it knows; empty
// otherwise.
func (e *Election) Key() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.key
}

// Rev returns the create revision of the leader's key: the token by which this tenure is
// told from all others. It stays after the end.
func (e *Election) Rev() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rev
}

// Header returns the header of etcd's last answer to a campaign that was won, a proclaim
// or a resignation of this election; nil before.
func (e *Election) Header() *pb.ResponseHeader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hdr
}
