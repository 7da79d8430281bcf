package service

import (
	"time"

	"github.com/eldest-io/eldest"
)

// span is one act of the play against a node, with what belongs to it.
type span struct {
	Fact // the act
	// facts are those from the act until all agreed again; all that follow where they
	// never did.
	facts []Fact
	// settled is when all agreed again, mended when a cut was healed or the process
	// went on; zero: never.
	settled, mended time.Time
	// successor is the first to lead with a newer token; nil: nobody did.
	successor *Fact
	// attempts were begun between the act and the settling.
	attempts []Attempt
}

// spans returns the acts that the audience came for.
func (x *exhibits) spans() []*span {
	var all []*span
	for i, f := range x.facts {
		if f.Kind == Acted && f.Act.main() {
			all = append(all, x.span(f, x.facts[i+1:]))
		}
	}
	return all
}

func (x *exhibits) span(act Fact, rest []Fact) *span {
	s := &span{Fact: act, facts: rest}
	for i, f := range rest {
		switch {
		case f.Kind == Settled:
			s.facts, s.settled = rest[:i], f.At
		case f.Kind == Acted && (f.Act == Mend || f.Act == Resume):
			s.mended = f.At
		case f.Kind == Status && f.Role == leading && f.Token > act.Token && s.successor == nil:
			s.successor = &rest[i]
		}
		if !s.settled.IsZero() {
			break
		}
	}
	for _, a := range x.attempts {
		if !a.Begin.Before(act.At) && (s.settled.IsZero() || a.Begin.Before(s.settled)) {
			s.attempts = append(s.attempts, a)
		}
	}
	return s
}

// first is the first of the span's facts about its node that matches; nil: none.
func (s *span) first(match func(Fact) bool) *Fact {
	for i, f := range s.facts {
		if f.Node == s.Node && match(f) {
			return &s.facts[i]
		}
	}
	return nil
}

// became is when the node first reported the role, in the span.
func (s *span) became(role string) *Fact {
	return s.first(func(f Fact) bool { return f.Kind == Status && f.Role == role })
}

// count is how many of the span's attempts match.
func (s *span) count(match func(Attempt) bool) int {
	n := 0
	for _, a := range s.attempts {
		if match(a) {
			n++
		}
	}
	return n
}

// served is the first write that was acknowledged in a newer tenure: when the client
// had its answer.
func (s *span) served() *Attempt {
	var first *Attempt
	for i, a := range s.attempts {
		if a.Method.writes() && a.Outcome == Done && a.Token > s.Token && (first == nil || a.At.Before(first.At)) {
			first = &s.attempts[i]
		}
	}
	return first
}

// silence is the longest time in the span in which the client had no answer from
// anybody that something was done.
func (s *span) silence() time.Duration {
	end := s.settled
	if end.IsZero() {
		return 0
	}
	longest, since := time.Duration(0), s.At
	for _, a := range s.attempts { // in the order of their ends
		if a.Outcome == Done && a.At.Before(end) {
			longest, since = max(longest, a.At.Sub(since)), a.At
		}
	}
	return max(longest, end.Sub(since))
}

// leaders says who had which token, by the nodes' own reports.
func (x *exhibits) leaders() map[eldest.Token]string {
	names := make(map[eldest.Token]string)
	for _, f := range x.facts {
		if f.Kind == Status && f.Role == leading {
			names[f.Token] = f.Node
		}
	}
	return names
}
