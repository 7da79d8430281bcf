package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/internal/core"
)

// Result has the counts of a search.
type Result struct {
	// Worlds is how many different worlds were visited, Moves how many moves between them.
	Worlds, Moves int
	// Wins counts worlds in which a candidate leads.
	Wins int
}

// ViolationError is a guarantee that was violated, with the moves that lead there.
type ViolationError struct {
	Err   error
	Moves []string
}

func (v *ViolationError) Error() string {
	return fmt.Sprintf("%v\nafter:\n  %s", v.Err, strings.Join(v.Moves, "\n  "))
}

func (v *ViolationError) Unwrap() error { return v.Err }

// state is a state that can be searched.
type state[S any] interface {
	// name is comparable, and the same for states that behave alike.
	name() any
	// leads reports whether a candidate leads in it.
	leads() bool
	// moves lists what can happen next.
	moves() []move[S]
	// settled judges a state in which nothing happens by itself any more.
	settled() error
}

// move is one event that can happen.
type move[S any] struct {
	what string
	// free means that it happens sooner or later by itself: it is no fault and no call.
	free bool
	// do returns the state that follows, and what is wrong with it.
	do func() (S, error)
}

// trail is a list of moves, newest first.
type trail struct {
	what   string
	before *trail
}

func (t *trail) violation(err error) error {
	var names []string
	for ; t != nil; t = t.before {
		names = append(names, t.what)
	}
	slices.Reverse(names)
	return &ViolationError{Err: err, Moves: names}
}

// All visits every world that can be reached within the limits. It returns the first violation that
// it finds, as a *ViolationError.
func All(l Limits, step Stepper) (Result, error) { return all(newWorld(l, step)) }

// Sessions visits every world of one session that can be reached within the bounds, and judges G3:
// while the session relies on its lease the server has not expired it, and once it does not it
// never does again. It returns the first violation, as a *ViolationError.
func Sessions(l Lease, step SessionStepper) (Result, error) { return all(newTenancy(l, step)) }

// all visits the states in the order of their distance from the first one, so that the trail of a
// violation is short.
func all[S state[S]](first S) (r Result, err error) {
	type visit struct {
		state S
		name  any
		way   *trail
	}
	seen := map[any]bool{first.name(): true}
	for queue := []visit{{first, first.name(), nil}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		r.Worlds++
		if at.state.leads() {
			r.Wins++
		}
		settled := true
		for _, m := range at.state.moves() {
			to := &trail{m.what, at.way}
			r.Moves++
			next, err := m.do()
			if err != nil {
				return r, to.violation(err)
			}
			name := next.name()
			settled = settled && (!m.free || name == at.name) // a move that changes nothing may happen for ever
			if !seen[name] {
				seen[name] = true
				queue = append(queue, visit{next, name, to})
			}
		}
		if settled {
			if err := at.state.settled(); err != nil {
				return r, at.way.violation(err)
			}
		}
	}
	return r, nil
}

// Random makes walks of random moves, each from the beginning until nothing can happen any
// more, and judges as All does.
func Random(l Limits, step Stepper, seed uint64, walks int) (Result, error) {
	var r Result
	random := rand.New(rand.NewPCG(seed, 0))
	for range walks {
		w := newWorld(l, step)
		var way *trail
		for moves := w.moves(); len(moves) > 0; moves = w.moves() {
			// Mostly moves that happen by themselves, or there would be little but faults.
			free := slices.DeleteFunc(slices.Clone(moves), func(m move[*world]) bool { return !m.free })
			if len(free) == 0 {
				if err := w.settled(); err != nil {
					return r, way.violation(err)
				}
			} else if random.IntN(4) > 0 {
				moves = free
			}
			m := moves[random.IntN(len(moves))]
			way = &trail{m.what, way}
			r.Moves++
			next, err := m.do()
			if err != nil {
				return r, way.violation(err)
			}
			if next.newest != w.newest {
				r.Wins++
			}
			w = next
		}
		if err := w.settled(); err != nil {
			return r, way.violation(err)
		}
		r.Worlds++
	}
	return r, nil
}

// Play makes moves by their names, in order, and returns a line with the resulting state of each
// candidate. An error is a *ViolationError, or reports that a move cannot be made.
func Play(l Limits, step Stepper, moves []string) (string, error) {
	w := newWorld(l, step)
	var way *trail
	for _, name := range moves {
		all := w.moves()
		n := slices.IndexFunc(all, func(m move[*world]) bool { return m.what == name })
		if n < 0 {
			return w.describe(), fmt.Errorf("%q is not possible here", name)
		}
		way = &trail{name, way}
		next, err := all[n].do()
		w = next
		if err != nil {
			return w.describe(), way.violation(err)
		}
	}
	return w.describe(), nil
}

func (w *world) describe() string {
	var b strings.Builder
	for i := range w.parts {
		s := w.parts[i].state
		fmt.Fprintf(&b, "%s is %v", key(i), s.Phase)
		if s.Token > 0 {
			fmt.Fprintf(&b, " with %d", s.Token)
		}
		if s.Phase != core.Idle && s.Want != core.Nothing {
			fmt.Fprintf(&b, ", wants to %v", s.Want)
		}
		if len(s.Position.Elders) > 0 {
			fmt.Fprintf(&b, ", behind %s (%d)", s.Position.Elders[0].Key, s.Position.Elders[0].Token)
		}
		if u := w.parts[i].under; u != nil {
			fmt.Fprintf(&b, "; %v is in flight", u.ask.Request)
		}
		if s.Paused {
			b.WriteString("; pauses")
		}
		if s.Doomed > 0 {
			fmt.Fprintf(&b, "; tokens up to %d are given up", s.Doomed)
		}
		b.WriteString("\n")
	}
	return b.String()
}
