package explore

import (
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

var (
	errRefused = errors.New("permission denied")
	errUnsafe  = errors.New("not bound to the lease any more")
)

// moves lists what can happen next.
func (w *world) moves() (all []move[*world]) {
	for i := range w.parts {
		all = append(all, w.movesOf(i)...)
	}
	return all
}

func (w *world) movesOf(i int) (all []move[*world]) {
	p := &w.parts[i]
	add := func(free bool, name string, do func(w *world, p *part) error) {
		all = append(all, move[*world]{what: key(i) + ": " + name, free: free, do: func() (*world, error) {
			next := w.clone()
			return next, do(next, &next.parts[i])
		}})
	}
	event := func(free bool, e core.Event, spend func(*Limits)) {
		name := e.Kind.String()
		switch e.Want {
		case core.LeadNow:
			name = "Campaign now"
		case core.Queue:
			name = "Register"
		case core.Nothing, core.Lead:
		}
		add(free, name, func(w *world, _ *part) error {
			if spend != nil {
				spend(&w.left)
			}
			return w.feed(i, e)
		})
	}
	call := func(l *Limits) { l.Calls-- }

	// The network and etcd.
	if u := p.under; u != nil {
		if u.arrived {
			event(true, u.reply, nil)
		} else {
			add(true, u.ask.Request.String()+" arrives", func(w *world, p *part) error {
				reply := w.carryOut(i, p.under.ask)
				p.under.arrived, p.under.reply = true, reply
				return w.kept()
			})
		}
		if w.left.Faults > 0 {
			add(false, u.ask.Request.String()+" is not answered", func(w *world, p *part) error {
				w.left.Faults--
				if write := writes(p.under.ask); write && !p.under.arrived {
					p.late = append(p.late, p.under.ask)
				}
				return w.feed(i, core.Event{Kind: core.Unanswered})
			})
			if !u.arrived {
				event(false, core.Event{Kind: core.Refused, Err: errRefused}, func(l *Limits) { l.Faults-- })
				event(false, core.Event{Kind: core.Undone}, func(l *Limits) { l.Faults-- })
			}
		}
	}
	for n := range p.late {
		add(false, p.late[n].Request.String()+" arrives late", func(w *world, p *part) error {
			ask := p.late[n]
			p.late = append(p.late[:n:n], p.late[n+1:]...)
			w.carryOut(i, ask)
			return w.kept()
		})
	}
	if p.state.Paused {
		event(true, core.Event{Kind: core.Due}, nil)
	}

	// The watches.
	watches := p.state.Watches()
	if l := w.of(watches.Elder.Token); l != nil && l.deleted > 0 {
		event(true, core.Event{Kind: core.ElderDeleted, Revision: l.deleted}, nil)
	}
	if l := w.of(watches.Key); l != nil && l.deleted > 0 {
		event(true, core.Event{Kind: core.KeyDeleted, Revision: l.deleted}, nil)
	}
	if own := w.alive(i); own != nil && watches.Late {
		event(true, core.Event{Kind: core.KeyAppeared, Token: own.token}, nil)
	}

	// The lease, and deletions by hand.
	lost := p.state.Phase == core.Lost
	if own := w.alive(i); own != nil {
		if w.left.Deletions > 0 {
			add(false, "key deleted by hand", func(w *world, _ *part) error {
				w.left.Deletions--
				l := w.alive(i)
				l.byHand = true
				w.remove(l)
				return w.kept()
			})
		}
		if lost && !p.expired {
			add(false, "lease expires", func(w *world, p *part) error {
				p.expired = true
				w.remove(w.alive(i))
				return w.kept()
			})
		}
	}
	if !lost && w.left.Ends > 0 {
		event(false, core.Event{Kind: core.SessionEnded, Err: eldest.ErrSessionLost}, func(l *Limits) { l.Ends-- })
	}
	if lost && !p.expired {
		add(false, "lease resumed", func(w *world, p *part) error {
			p.state = p.state.Resumed()
			if own := w.alive(i); own != nil && own.token > p.state.Doomed {
				own.won = false // its tenure may continue
			}
			return w.feed(i, core.Event{Kind: core.Campaign, Want: core.Lead})
		})
	}

	// The users.
	if w.left.Calls > 0 && !lost {
		switch p.state.Phase {
		case core.Idle, core.Leaving, core.Draining:
			if p.state.Want == core.Nothing || p.state.Phase == core.Draining {
				event(false, core.Event{Kind: core.Campaign, Want: core.Lead}, call)
				event(false, core.Event{Kind: core.Campaign, Want: core.LeadNow}, call)
				event(false, core.Event{Kind: core.Campaign, Want: core.Queue}, call)
			}
		case core.Waiting, core.Proving:
			if p.state.Want == core.Queue {
				event(false, core.Event{Kind: core.Campaign, Want: core.Lead}, call)
			}
		}
		switch p.state.Phase {
		case core.Waiting, core.Proving:
			event(false, core.Event{Kind: core.Requeue}, call)
			event(false, core.Event{Kind: core.Leave, Err: eldest.ErrWithdrawn}, call)
		case core.Entering, core.Draining:
			event(false, core.Event{Kind: core.Leave, Err: eldest.ErrWithdrawn}, call)
		case core.Leading:
			event(false, core.Event{Kind: core.Leave, Err: eldest.ErrResigned}, call)
			event(false, core.Event{Kind: core.Drain, Err: eldest.ErrDraining}, call)
			event(false, core.Event{Kind: core.KeyUnsafe, Err: errUnsafe}, call)
		case core.Leaving: // a leader that got no answer to its resignation
			if l := w.of(p.state.Token); l != nil && l.won && p.state.Want == core.Nothing {
				event(false, core.Event{Kind: core.Keep}, call)
			}
		}
	}
	return all
}

// feed gives an event to a candidate and carries the effects out.
func (w *world) feed(i int, e core.Event) error {
	p := &w.parts[i]
	switch e.Kind {
	case core.Registered, core.Looked, core.Surveyed, core.Deleted, core.Refused, core.Undone, core.Unanswered:
		p.under = nil
	case core.SessionEnded:
		if u := p.under; u != nil && !u.arrived && writes(u.ask) {
			p.late = append(p.late, u.ask)
		}
		p.under = nil
	}
	next, effects := w.step(p.state, e)
	p.state = next
	if effects.Ended > 0 || effects.Drained {
		if p.leading > 0 && effects.Ended > 0 && effects.Ended != p.leading {
			return fmt.Errorf("the end of %d is reported, but %d leads", effects.Ended, p.leading)
		}
		p.leading = 0
	}
	if effects.Won > 0 {
		if err := w.won(i, effects.Won); err != nil {
			return err
		}
		p.leading, w.newest = effects.Won, max(w.newest, effects.Won)
	}
	if ask := effects.Send; ask.Request != core.None {
		if p.under != nil && writes(p.under.ask) {
			return fmt.Errorf("%s: %v is sent while %v is in flight", key(i), ask.Request, p.under.ask.Request)
		}
		p.under = &flight{ask: ask}
	} else if p.under != nil && next.Asked.Request == core.None {
		switch kept := e.Kind == core.Keep && p.under.ask.Request == core.Delete; {
		case kept && !p.under.arrived:
			p.late = append(p.late, p.under.ask) // it can delete only what is doomed
		case !kept && writes(p.under.ask):
			return fmt.Errorf("%s: %v is in flight and was forgotten", key(i), p.under.ask.Request)
		}
		p.under = nil
	}
	return nil
}

// writes reports whether a request that was given up may still have an effect.
func writes(a core.Ask) bool { return a.Request != core.Look && a.Request != core.Survey }
