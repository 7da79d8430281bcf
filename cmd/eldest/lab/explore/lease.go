package explore

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/internal/core"
)

// Lease bounds the world of one session. It has no end: times are relative to the present, so that
// states that differ only in the time that has passed are one state.
type Lease struct {
	// TTL is what the server grants, Margin what the session subtracts, in ticks of the server's clock.
	TTL, Margin int
	// Leaders is how often etcd's leader is replaced; the old one still answers renewals until it
	// notices.
	Leaders int
	// Drift means that the session's clock may miss a tick in each TTL / Margin of them.
	Drift bool
}

// SessionStepper is core.StepSession, or a broken one in tests.
type SessionStepper func(core.Session, core.SessionEvent) (core.Session, core.SessionEffects)

// tenancy is a session, with its step function.
type tenancy struct {
	between
	step SessionStepper
}

// between is a lease in the server, its session, and the requests between them. It is comparable,
// so that worlds are.
type between struct {
	left    Lease
	steady  int // ticks since the session's clock missed one, as far as that matters
	remains int // until the server expires the lease; 0: it has
	term    uint64
	// under is the request in flight.
	under struct {
		kind    core.SessionKind // Renewed or Confirmed: the kind of its answer; Clock: no request
		arrived bool
		term    uint64
		gone    bool
	}
	// lapsed means that the deadline has passed.
	lapsed bool
	// late means that a renewal that was given up may still arrive.
	late    bool
	session core.Session
}

const (
	tick = time.Second
	// present is the reading of the session's clock at all times: as it advances, the session's instants
	// become older. All that is as old as present is alike, since no TTL and no timeout is as long.
	present = 10 * tick
)

func newTenancy(l Lease, step SessionStepper) tenancy {
	w := tenancy{between{left: l, remains: l.TTL, term: 1}, step}
	w.session = core.Opened(w.rhythm(), present, present, tick, false)
	return w
}

func (w tenancy) rhythm() core.Rhythm {
	return core.Rhythm{TTL: time.Duration(w.left.TTL) * tick, Margin: time.Duration(w.left.Margin) * tick, Every: 10 * tick, Timeout: 2 * tick}
}

func (w tenancy) name() any { return w.between }

func (w tenancy) leads() bool { return w.session.Stage != core.Ended && present < w.session.Deadline }

func (w tenancy) settled() error { return nil }

// judged returns the state after a move, and what is wrong with it.
func (w tenancy) judged() (tenancy, error) {
	w.session.Cause, w.session.Reason = nil, nil // errors are new values each time
	w.session.Failures = min(w.session.Failures, 1)
	switch {
	case w.leads() && w.remains == 0:
		return w, fmt.Errorf("G3: the lease has expired, and the session counts on it for another %v", w.session.Deadline-present)
	case w.leads() && w.lapsed:
		return w, errors.New("G3: the session counts on its lease again, after the deadline has passed")
	}
	w.lapsed = !w.leads()
	return w, nil
}

func (w tenancy) moves() (all []move[tenancy]) {
	add := func(ok bool, what string, do func(w *tenancy)) {
		if ok {
			all = append(all, move[tenancy]{what: what, do: func() (tenancy, error) {
				next := w
				do(&next)
				return next.judged()
			}})
		}
	}
	event := func(ok bool, what string, e core.SessionEvent) {
		add(ok, what, func(w *tenancy) { w.feed(e) })
	}
	gap := (w.left.TTL + w.left.Margin - 1) / w.left.Margin // two ticks that the session's clock misses
	add(true, "tick", func(w *tenancy) { w.pass(); w.age(); w.steady = min(w.steady+1, gap) })
	add(w.left.Drift && w.steady == gap, "tick that the session's clock misses", func(w *tenancy) { w.pass(); w.steady = 0 })
	event(w.session.Stage != core.Ended, "clock", core.SessionEvent{Kind: core.Clock})
	event(w.session.Stage == core.Resting, "others renew", core.SessionEvent{Kind: core.Together})
	add(w.left.Leaders > 0 && w.term < 3, "etcd elects another leader", func(w *tenancy) {
		w.left.Leaders--
		w.term++
		w.renew() // a new leader starts all TTLs again
	})
	u := w.under
	renewal := u.kind == core.Renewed && !u.arrived
	add(renewal, "renewal arrives", func(w *tenancy) { w.under.arrived, w.under.term, w.under.gone = true, w.term, !w.renew() })
	add(renewal && w.term > 1, "renewal arrives at the old leader", func(w *tenancy) { w.under.arrived, w.under.term = true, w.term-1 })
	add(u.kind == core.Confirmed && !u.arrived, "question arrives", func(w *tenancy) { w.under.arrived, w.under.term = true, w.term })
	add(w.late, "renewal arrives late", func(w *tenancy) { w.late = false; w.renew() })
	answer := core.SessionEvent{Kind: u.kind, Term: u.term, Rhythm: w.rhythm()}
	if u.gone {
		answer = core.SessionEvent{Kind: core.Gone, Err: errGone}
	}
	event(u.arrived, "answer", answer)
	add(u.kind != core.Clock, "no answer", func(w *tenancy) {
		w.late = w.late || renewal
		w.feed(core.SessionEvent{Kind: core.Failed, Err: errGone})
	})
	return all
}

var errGone = errors.New("not found")

// pass is one tick of the server.
func (w *tenancy) pass() { w.remains = max(0, w.remains-1) }

// age is one tick of the session's clock.
func (w *tenancy) age() {
	for _, at := range []*time.Duration{&w.session.Deadline, &w.session.Next, &w.session.Sent, &w.session.Asked} {
		*at = max(0, *at-tick)
	}
}

// renew renews the lease in the server, and reports whether it existed.
func (w *tenancy) renew() (ok bool) {
	if w.remains > 0 {
		w.remains = w.left.TTL
	}
	return w.remains > 0
}

func (w *tenancy) feed(e core.SessionEvent) {
	e.Now = present
	if e.Kind != core.Clock && e.Kind != core.Together {
		w.under = between{}.under
	}
	next, effects := w.step(w.session, e)
	w.session = next
	if effects.Pause { // an attempt is over
		w.forget()
		w.session, _ = w.step(next, core.SessionEvent{Kind: core.Rested, Now: present, Pause: tick})
	}
	switch {
	case effects.Renew:
		w.under.kind = core.Renewed
	case effects.Confirm:
		w.under.kind = core.Confirmed
	case effects.Again: // only the second is answered; the first may still arrive
		kind := w.under.kind
		w.forget()
		w.under.kind = kind
	case effects.Ended:
		w.forget()
	}
}

// forget drops the request in flight.
func (w *tenancy) forget() {
	w.late = w.late || w.under.kind == core.Renewed && !w.under.arrived
	w.under = between{}.under
}
