package explore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Limits limit what happens in a world. Each is a total number.
type Limits struct {
	// Candidates is the number of candidates.
	Candidates int
	// Calls are calls of users: campaign, leave, keep, requeue, drain.
	Calls int
	// Faults are replies that are lost, requests that are given up and arrive later or never,
	// and refusals.
	Faults int
	// Deletions are keys that are deleted by hand.
	Deletions int
	// Yields are times that the first candidate yields when it could lead.
	Yields int
	// Ends are sessions that end, with their leases expiring later or being resumed.
	Ends int
}

// Stepper is core.Step, or a broken one in tests.
type Stepper func(core.Candidate, core.Event) (core.Candidate, core.Effects)

// life is one existence of a key.
type life struct {
	owner   int
	token   eldest.Token
	deleted int64 // the revision; 0 while it exists
	byHand  bool
	won     bool
}

// flight is a request in flight.
type flight struct {
	ask core.Ask
	// arrived means that etcd has executed it; reply is then in flight.
	arrived bool
	reply   core.Event
}

// part is one candidate, and its requests and replies in flight.
type part struct {
	state core.Candidate
	// under is the request whose answer is awaited; nil: none.
	under *flight
	// late are writes whose answers are no longer awaited.
	late []core.Ask
	// leading is the token of the leading context; 0: there is none.
	leading eldest.Token
	// expired means that the lease has expired.
	expired bool
}

// world is the whole state.
type world struct {
	step     Stepper
	left     Limits
	revision int64
	lives    []life
	parts    []part
	newest   eldest.Token // that has led
}

func newWorld(l Limits, step Stepper) *world {
	w := &world{step: step, left: l, revision: 1, parts: make([]part, l.Candidates)}
	w.parts[0].state.Yields = l.Yields > 0
	return w
}

func (w *world) clone() *world {
	c := *w
	c.lives, c.parts = slices.Clone(w.lives), slices.Clone(w.parts)
	for i := range c.parts {
		c.parts[i].late = slices.Clone(c.parts[i].late)
		if under := c.parts[i].under; under != nil {
			copied := *under
			c.parts[i].under = &copied
		}
	}
	return &c
}

// key is the name of a candidate's key.
func key(owner int) string { return string(rune('a' + owner)) }

// alive returns the life of a candidate's key that exists now, or nil.
func (w *world) alive(owner int) *life { return w.at(owner, w.revision) }

// at returns the life of a candidate's key at a revision, or nil.
func (w *world) at(owner int, revision int64) *life {
	for i := range w.lives {
		if l := &w.lives[i]; l.owner == owner && l.existed(revision) {
			return l
		}
	}
	return nil
}

func (l *life) existed(revision int64) bool {
	return int64(l.token) <= revision && (l.deleted == 0 || l.deleted > revision)
}

// of returns the life with a token, or nil.
func (w *world) of(token eldest.Token) *life {
	for i := range w.lives {
		if w.lives[i].token == token {
			return &w.lives[i]
		}
	}
	return nil
}

// position returns the position of a token at a revision.
func (w *world) position(token eldest.Token, revision int64) core.Position {
	p := core.Position{Revision: revision, Complete: true}
	for i := len(w.lives) - 1; i >= 0; i-- { // newest first
		if l := &w.lives[i]; l.token < token && l.existed(revision) {
			p.Elders = append(p.Elders, core.Elder{Key: key(l.owner), Token: l.token})
		}
	}
	return p
}

// carryOut executes a request of a candidate in etcd, and returns its reply.
func (w *world) carryOut(owner int, a core.Ask) core.Event {
	own := w.alive(owner)
	switch a.Request {
	case core.Look:
		at := w.revision
		if a.At > 0 && a.At < at {
			at = a.At
		}
		e := core.Event{Kind: core.Looked, Position: core.Position{Revision: at}}
		if l := w.at(owner, at); l != nil {
			e.Token, e.Position = l.token, w.position(l.token, at)
		}
		return e
	case core.Survey:
		e := core.Event{Kind: core.Surveyed, Position: core.Position{Revision: w.revision, Complete: true}}
		if own != nil {
			e.Token = own.token
			e.Yield = w.left.Yields > 0 && slices.ContainsFunc(w.lives, func(l life) bool { return l.deleted == 0 && l.owner != owner })
		}
		if e.Yield {
			w.left.Yields--
		}
		return e
	case core.Delete:
		if own != nil && own.token == a.Token {
			w.remove(own)
		}
		return core.Event{Kind: core.Deleted, Revision: w.revision}
	case core.Register, core.RegisterAlone:
		switch {
		case w.parts[owner].expired:
			return core.Event{Kind: core.Refused, Err: eldest.ErrSessionLost}
		case own != nil:
			return core.Event{Kind: core.Registered, Token: own.token, Position: core.Position{Revision: w.revision}}
		case a.Request == core.RegisterAlone && slices.ContainsFunc(w.lives, func(l life) bool { return l.deleted == 0 }):
			return core.Event{Kind: core.Refused, Err: eldest.ErrNotElected}
		}
		w.revision++
		token := eldest.Token(w.revision)
		w.lives = append(w.lives, life{owner: owner, token: token})
		return core.Event{Kind: core.Registered, Token: token, Position: w.position(token, w.revision)}
	default:
		panic(fmt.Sprintf("no request: %v", a))
	}
}

func (w *world) remove(l *life) {
	w.revision++
	l.deleted = w.revision
}

// won judges a win: G1, G2 and G3.
func (w *world) won(i int, token eldest.Token) error {
	at := w.parts[i].state.Position.Revision
	own := w.at(i, at)
	if own == nil || own.token != token {
		return fmt.Errorf("G1: %s leads with %d, and has no such key at revision %d", key(i), token, at)
	}
	if p := w.position(token, at); len(p.Elders) > 0 {
		return fmt.Errorf("G1: %s leads with %d, and %v was older at revision %d", key(i), token, p.Elders, at)
	}
	if own.won {
		return fmt.Errorf("G2: %s wins with %d a second time", key(i), token)
	}
	own.won = true
	if token < w.newest && !own.byHand { // the leader may not have been notified that its key was removed
		return fmt.Errorf("G2: %s leads with %d after %d", key(i), token, w.newest)
	}
	for j := range w.parts {
		if other := w.parts[j].leading; other > 0 && !w.of(other).byHand && !own.byHand {
			return fmt.Errorf("G3: %s leads with %d while %s leads with %d", key(i), token, key(j), other)
		}
	}
	return nil
}

// kept judges the keys in etcd: the key of a candidate that leads is deleted by hand only.
func (w *world) kept() error {
	for i := range w.parts {
		if token := w.parts[i].leading; token > 0 {
			if l := w.of(token); l.deleted > 0 && !l.byHand {
				return fmt.Errorf("G3: the key of %s, which leads with %d, is deleted by its own request", key(i), token)
			}
		}
	}
	return nil
}

// settled judges a world in which nothing happens by itself any more: G5 and G8.
func (w *world) settled() error {
	var oldest *life
	for i := range w.lives {
		if l := &w.lives[i]; l.deleted == 0 {
			oldest = l
			break
		}
	}
	for i := range w.parts {
		s := w.parts[i].state
		own := w.alive(i)
		switch s.Phase {
		case core.Idle:
			if own != nil {
				return fmt.Errorf("G8: the key of %s is left", key(i))
			}
		case core.Entering, core.Proving, core.Leaving:
			return fmt.Errorf("G5: %s never leaves the phase %v", key(i), s.Phase)
		case core.Waiting:
			if own == nil || own == oldest && s.Want != core.Queue {
				return fmt.Errorf("G5: %s waits for ever for %v", key(i), s.Position.Elders)
			}
		case core.Leading, core.Draining:
			if own != oldest {
				return fmt.Errorf("G1: %s is %v, and not the oldest", key(i), s.Phase)
			}
		case core.Lost:
		}
	}
	return nil
}

// name is equal for worlds that behave alike.
func (w *world) name() any {
	b := make([]byte, 0, 256)
	put := func(numbers ...int64) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, n)
		}
	}
	flag := func(flags ...bool) {
		for _, f := range flags {
			if f {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	ask := func(a core.Ask) { put(int64(a.Request), int64(a.Token), a.At) }
	position := func(p core.Position) {
		put(p.Revision, int64(len(p.Elders)))
		for _, e := range p.Elders {
			put(int64(e.Token))
		}
		flag(p.Complete)
	}
	l := w.left
	put(w.revision, int64(w.newest), int64(l.Calls), int64(l.Faults), int64(l.Deletions), int64(l.Ends), int64(l.Yields), int64(len(w.lives)))
	for _, l := range w.lives {
		put(int64(l.owner), int64(l.token), l.deleted)
		flag(l.byHand, l.won)
	}
	for i := range w.parts {
		p := &w.parts[i]
		s := &p.state
		put(int64(s.Phase), int64(s.Want), int64(s.Token), int64(s.Doomed), int64(p.leading))
		position(s.Position)
		ask(s.Asked)
		flag(s.Owed, s.Unsure, s.Paused, p.expired, p.under != nil)
		if u := p.under; u != nil {
			ask(u.ask)
			flag(u.arrived, u.reply.Yield)
			put(int64(u.reply.Kind), int64(u.reply.Token))
			position(u.reply.Position)
		}
		put(int64(len(p.late)))
		for _, a := range p.late {
			ask(a)
		}
	}
	return string(b)
}

func (w *world) leads() bool {
	return slices.ContainsFunc(w.parts, func(p part) bool { return p.leading > 0 })
}
