package explore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/internal/core"
)

// Result is what a search has seen.
type Result struct {
	// Worlds is how many different ones were visited, Moves how many moves between them.
	Worlds, Moves int
	// Wins counts worlds in which somebody leads.
	Wins int
}

// ViolationError is a guarantee that does not hold, with the moves that lead there.
type ViolationError struct {
	Err   error
	Moves []string
}

func (v *ViolationError) Error() string {
	return fmt.Sprintf("%v\nafter:\n  %s", v.Err, strings.Join(v.Moves, "\n  "))
}

func (v *ViolationError) Unwrap() error { return v.Err }

// All visits every world that can be reached within the limits. It returns the first
// violation that it meets, as a *ViolationError.
func All(l Limits, step Stepper) (Result, error) {
	s := search{step: step, seen: make(map[string]struct{})}
	first := newWorld(l)
	err := s.visit(first, first.name(), nil)
	return s.Result, err
}

type search struct {
	Result
	step Stepper
	seen map[string]struct{}
}

// trail is a list of moves, newest first.
type trail struct {
	move   fmt.Stringer
	before *trail
}

func (t *trail) violation(err error) error {
	var names []string
	for ; t != nil; t = t.before {
		names = append([]string{t.move.String()}, names...)
	}
	return &ViolationError{Err: err, Moves: names}
}

func (s *search) visit(w *world, name string, way *trail) error {
	if _, ok := s.seen[name]; ok {
		return nil
	}
	s.seen[name] = struct{}{}
	s.Worlds++
	for i := range w.parts {
		if w.parts[i].leading > 0 {
			s.Wins++
			break
		}
	}
	settled := true
	for _, m := range w.moves() {
		next := w.clone()
		to := &trail{m, way}
		s.Moves++
		if err := m.do(next, s.step); err != nil {
			return to.violation(err)
		}
		there := next.name()
		settled = settled && (!m.free || there == name) // what changes nothing may happen for ever
		if err := s.visit(next, there, to); err != nil {
			return err
		}
	}
	if settled {
		if err := w.settled(); err != nil {
			return way.violation(err)
		}
	}
	return nil
}

// Random makes walks of random moves, each from the beginning until nothing can happen any
// more, and judges as All does.
func Random(l Limits, step Stepper, seed uint64, walks int) (Result, error) {
	var r Result
	random := rand.New(rand.NewPCG(seed, 0))
	for range walks {
		w := newWorld(l)
		var way *trail
		for {
			moves := w.moves()
			settled := true
			for _, m := range moves {
				settled = settled && !m.free
			}
			if settled {
				if err := w.settled(); err != nil {
					return r, way.violation(err)
				}
			}
			if len(moves) == 0 {
				break
			}
			// Mostly what happens by itself, or there would be little but faults.
			if free := slices.DeleteFunc(slices.Clone(moves), func(m move) bool { return !m.free }); len(free) > 0 && random.IntN(4) > 0 {
				moves = free
			}
			m := moves[random.IntN(len(moves))]
			way = &trail{m, way}
			r.Moves++
			before := w.newest
			if err := m.do(w, step); err != nil {
				return r, way.violation(err)
			}
			if w.newest != before {
				r.Wins++
			}
		}
		r.Worlds++
	}
	return r, nil
}

// name is the same for worlds that behave alike.
func (w *world) name() string {
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
