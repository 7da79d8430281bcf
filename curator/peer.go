package curator

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// peer is the leader of one tenure, as the others reach it: over a few connections that are
// made when calls want them, and one more for what the nodes ask each other.
//
// A caller's calls share a connection while any of them is in flight, so that one whose
// streams nobody reads holds up itself and not all others.
//
// Invariant: once closed, it has no connection and makes none. While it has one for calls it is
// tended.
type peer struct {
	leader elector.Leader
	dial   func(elector.Leader) (*link, error)
	// tend watches the leader, over a connection of its own, until that is given up.
	tend func(p *peer, pulse *link)

	// dialling is held while a connection is made. That asks for credentials, and
	// whoever answers must not hold up the one who closes the peer.
	dialling sync.Mutex

	mu     sync.Mutex
	links  []*link
	pulse  *link
	shares map[any]*share // by caller
	closed error          // why

	unary unaries
	// leaving says that the leader has told that it serves no more; the router's.
	leaving bool
	// warned says that it was logged that this leader cannot be reached.
	warned sync.Once
}

// share is what one caller has in flight on one connection.
type share struct {
	link    *link
	calls   int // guarded by the peer's mutex
	sending atomic.Int64
}

// seat is the place of one call on a connection.
type seat struct {
	*link
	peer   *peer
	caller any
	share  *share
}

// maxLinks is how many connections a peer has for calls, at most.
const maxLinks = 4

// unaries are the methods of which the leader has said that they are unary. It serves
// them, so their number is bounded.
type unaries struct{ names sync.Map }

func (u *unaries) knows(name string) bool {
	_, ok := u.names.Load(name)
	return ok
}

func (u *unaries) learn(name string) { u.names.Store(name, nil) }

// take returns a place for one call of a caller's, which ends with the seat's done. It does
// not block: gRPC dials behind it. The error is errHungUp, with the reason, or that of
// an address which cannot be dialled at all. The connection may have been given up since.
func (p *peer) take(caller any) (*seat, error) {
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err
	}
	p.dialling.Lock()
	defer p.dialling.Unlock()
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err // somebody else was quicker
	}
	l, err := p.dial(p.leader)
	if err != nil {
		return nil, err
	}
	var pulse *link
	if !p.tended() {
		if pulse, err = p.dial(p.leader); err != nil {
			l.giveUp(err)
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed != nil:
		err = p.closed
	case p.pulse == nil && pulse == nil:
		err = errIdle // all were given up in this moment: once more
	case pulse != nil:
		p.pulse = pulse
		p.tend(p, pulse)
	}
	if err != nil {
		l.giveUp(err)
		if pulse != nil {
			pulse.giveUp(err)
		}
		return nil, fmt.Errorf("%w: %w", errHungUp, err)
	}
	p.links = append(p.links, l)
	return p.seat(caller, &share{link: l}), nil // now: after a stall it may be given up before anybody can ask for it
}

// tended reports whether somebody watches the leader.
func (p *peer) tended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pulse != nil
}

// present finds a place on the connections that there are; nil if one is to be made.
func (p *peer) present(caller any) (*seat, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return nil, fmt.Errorf("%w: %w", errHungUp, p.closed)
	}
	p.links = slices.DeleteFunc(p.links, (*link).given)
	mine := p.shares[caller]
	if mine != nil && !mine.link.given() && mine.link.sending.Load() <= mine.sending.Load() {
		return p.seat(caller, mine), nil
	}
	var best *link
	for _, l := range p.links {
		if best == nil || l.load() < best.load() {
			best = l
		}
	}
	if best == nil || best.load() > 0 && len(p.links) < maxLinks {
		return nil, nil //nolint:nilnil // there is none
	}
	return p.seat(caller, &share{link: best}), nil
}

// seat gives a call of a caller's a place. The caller of this holds mu.
func (p *peer) seat(caller any, s *share) *seat {
	if p.shares == nil {
		p.shares = make(map[any]*share)
	}
	p.shares[caller] = s
	s.calls++
	s.link.calls.Add(1)
	return &seat{link: s.link, peer: p, caller: caller, share: s}
}

// done ends a call.
func (s *seat) done() {
	s.peer.mu.Lock()
	if s.share.calls--; s.share.calls == 0 && s.peer.shares[s.caller] == s.share {
		delete(s.peer.shares, s.caller)
	}
	s.peer.mu.Unlock()
	s.link.done()
}

// send sends a message, and notes that it is being sent.
func (s *seat) send(there interface{ SendMsg(m any) error }, f *rawframe.Frame) error {
	s.sending.Add(1)
	s.share.sending.Add(1)
	defer s.sending.Add(-1)
	defer s.share.sending.Add(-1)
	return there.SendMsg(f)
}

// busy reports whether any call is in flight.
func (p *peer) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.links, func(l *link) bool { return l.calls.Load() > 0 })
}

var errHungUp = errors.New("the connection was closed")

// giveUp closes all connections, and calls in flight there end. The next call makes new ones.
func (p *peer) giveUp(reason error) {
	p.mu.Lock()
	links := p.links
	if p.pulse != nil {
		links = append(links, p.pulse)
	}
	p.links, p.pulse = nil, nil
	p.mu.Unlock()
	for _, l := range links {
		l.giveUp(reason)
	}
}

// close gives the connections up, for good: each when the last call there has ended, after
// linger at the latest. A leader that resigned has just answered its last calls, and the
// news of the next one may be quicker than the answers.
func (p *peer) close(reason error, linger time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = reason
	}
	for _, l := range p.links {
		l.retire(reason, linger)
	}
	if p.pulse != nil {
		p.pulse.giveUp(reason)
	}
}
