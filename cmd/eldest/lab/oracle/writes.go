package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"
)

// I2 checks: a guarded write of token r that commits at revision v found the key with create
// revision r at v-1, and r was the oldest there; and its sender holds the tenure r. There is no
// exception.
func I2(h *History) []Violation {
	out := found{invariant: "I2"}
	won := map[claim]bool{}
	for _, e := range h.Events {
		won[e.claim()] = won[e.claim()] || e.Kind == Won
		if e.Kind == Sent && e.Token != 0 && !won[e.claim()] {
			out.add(e.At, "%s sent write %s under token %d, which it never won", e.Who, e.Write, e.Token)
		}
	}
	all, _, foreign := h.commits()
	for _, c := range foreign {
		out.add(c.At, "value %q was not written by a participant", c.Value)
	}
	q := h.queue()
	for _, c := range all {
		l, leader := q.byToken(c.token), q.leader(c.Rev-1)
		switch {
		case l == nil || !l.aliveAt(c.Rev-1):
			out.add(c.At, "write %s of token %d committed at %d without its key", c.name, c.token, c.Rev)
		case leader != c.token:
			out.add(c.At, "write %s of token %d committed at %d while token %d was older", c.name, c.token, c.Rev, leader)
		case c.Holder != "" && c.Holder != l.key:
			out.add(c.At, "write %s of token %d committed at %d for %s, whose token it is not", c.name, c.token, c.Rev, c.Holder)
		}
	}
	return out.all
}

// I3 checks: in the order of mod revisions the tokens of committed writes never decrease, and the
// data is never deleted ([Rising]); an acknowledged write is committed, where and as its writer was
// notified ([Kept]), a refused one never ([Refusals]), and no write, whatever its outcome, is
// committed twice, or without a request, or as another operation than was requested ([Once]).
func I3(h *History) []Violation {
	return slices.Concat(Rising(h), Kept(h), Refusals(h), Once(h))
}

// Rising is the part of I3 about the order of writes. If tenures are opened by a first write of
// their own (About.Opens), that comes once, and before all others.
func Rising(h *History) []Violation {
	out := found{invariant: "I3"}
	all, deleted, _ := h.commits()
	for _, c := range deleted {
		out.add(c.At, "the data was deleted at %d, including acknowledged writes", c.Rev)
	}
	last, opened := int64(0), map[int64]bool{}
	for _, c := range all {
		if c.token < last {
			out.add(c.At, "write %s of token %d committed at %d after one of token %d", c.name, c.token, c.Rev, last)
		}
		last = max(last, c.token)
		switch {
		case c.Opens && opened[c.token]:
			out.add(c.At, "the tenure of token %d was opened a second time, at %d", c.token, c.Rev)
		case h.Opens && !c.Opens && !opened[c.token]:
			out.add(c.At, "write %s committed at %d, and its tenure, token %d, had not been opened", c.name, c.Rev, c.token)
		}
		opened[c.token] = opened[c.token] || c.Opens
	}
	return out.all
}

// Kept is the part of I3 about acknowledged writes.
func Kept(h *History) []Violation {
	out := found{invariant: "I3"}
	commits := h.byName()
	for _, e := range h.Events {
		if e.Kind != Acked {
			continue
		}
		there := commits[e.Write]
		if len(there) == 0 {
			out.add(e.At, "write %s was acknowledged to %s but is not in the store", e.Write, e.Who)
			continue
		}
		switch c := there[0]; {
		case len(there) > 1: // Once reports it
		case e.Commit != 0 && e.Commit != c.Rev, e.Token != 0 && e.Token != c.token:
			out.add(e.At, "write %s was acknowledged at revision %d with token %d, but the store has it at %d with %d", e.Write, e.Commit, e.Token, c.Rev, c.token)
		}
	}
	return out.all
}

// Refusals is the part of I3 about refused writes.
func Refusals(h *History) []Violation {
	out := found{invariant: "I3"}
	commits := h.byName()
	for _, e := range h.Events {
		if there := commits[e.Write]; e.Kind == Refused && len(there) > 0 {
			out.add(e.At, "write %s was refused to %s but applied, at %s", e.Write, e.Who, revisions(there))
		}
	}
	return out.all
}

// Once is the part of I3 about all writes.
func Once(h *History) []Violation {
	out := found{invariant: "I3"}
	requests := map[string]Event{}
	for _, e := range h.Events {
		if e.Kind == Sent {
			requests[e.Write] = e
		}
	}
	commits := h.byName()
	for _, name := range slices.Sorted(maps.Keys(commits)) {
		there := commits[name]
		if len(there) > 1 {
			out.add(h.end(), "write %s was applied %d times, at %s", name, len(there), revisions(there))
		}
		request, sent := requests[name]
		if !sent {
			out.add(h.end(), "write %s was applied, at %s, and was never sent", name, revisions(there))
		} else if did := there[0].Did; did != "" && did != request.Text {
			out.add(request.At, "write %s requested %s, but %s was executed", name, request.Text, did)
		}
	}
	return out.all
}

// revisions formats the revisions of writes.
func revisions(there []commit) string {
	s := "revision"
	for i, c := range there {
		if i > 0 {
			s += " and"
		}
		s += fmt.Sprintf(" %d", c.Rev)
	}
	return s
}

// Precedes checks that the order of revisions does not contradict the clock by which
// requests are sent and answered ([Sequence]), and that no read is stale ([Fresh]).
func Precedes(h *History) []Violation { return slices.Concat(Sequence(h), Fresh(h)) }

// Sequence checks writes: one that was sent when a revision was known has a later revision.
//
// The time of a revision is unknown. So a write that was committed before it was requested goes
// unnoticed as long as no participant had received its revision, or a later one.
func Sequence(h *History) []Violation {
	out := found{invariant: "precedes"}
	commits := h.byName()
	b := h.bounds(commits)
	for _, e := range h.Events {
		if e.Kind != Sent {
			continue
		}
		for _, c := range commits[e.Write] {
			if known := b.known(e.At); c.Rev <= known {
				out.add(e.At, "write %s was applied at revision %d, and was sent when revision %d was known already", e.Write, c.Rev, known)
			}
		}
	}
	return out.all
}

// Fresh checks reads, of each register by itself: none returns a value that had been replaced when
// the read was sent, or that had not been requested when it was answered. A read returns no state
// that ended at or before the newest revision that was known when it began, and none from a
// revision that cannot have existed when it was over.
func Fresh(h *History) []Violation {
	out := found{invariant: "precedes"}
	b := h.bounds(h.byName())
	registers := map[string][]commit{}
	all, _, _ := h.commits()
	for _, c := range all {
		if !c.Opens {
			registers[c.register] = append(registers[c.register], c)
		}
	}
	for _, e := range h.Events {
		if e.Kind != Read {
			continue
		}
		known, first := b.known(e.At), b.future(e.Until)
		switch began, ended, found := state(registers[e.Key], e.Write, first); {
		case !found:
			out.add(e.At, "%s read %q of %q, which the store never had there", e.Who, e.Write, e.Key)
		case began >= first:
			out.add(e.At, "%s read %q of %q as it was from revision %d on, which was impossible: revision %d was not requested yet", e.Who, e.Write, e.Key, began, first)
		case ended <= known:
			out.add(e.At, "%s read %q of %q as it was until revision %d, when revision %d was known already", e.Who, e.Write, e.Key, ended, known)
		}
	}
	return out.all
}

// state finds the state of a register that a read returned: the revisions that began it and ended
// it, 0 and [math.MaxInt64] if none did. Of several states without a value, it is the last one that
// began before the revision first, which is the reader's best case.
func state(register []commit, write string, first int64) (began, ended int64, found bool) {
	ended, found = math.MaxInt64, write == "" // nothing was there before the first write
	if len(register) > 0 && found {
		ended = register[0].Rev
	}
	for i, c := range register {
		next := int64(math.MaxInt64)
		if i+1 < len(register) {
			next = register[i+1].Rev
		}
		switch {
		case write == "" && c.Deleted && c.Rev < first:
			began, ended = c.Rev, next
		case write != "" && c.name == write:
			return c.Rev, next, !c.Deleted
		}
	}
	return began, ended, found
}

// bounds relates revisions, whose times are unknown, to the clock: a revision that a participant
// had received existed, and one that no participant had requested did not.
type bounds struct {
	heard []moment // in the order of time; the newest revision known by then
	asked []moment // in the order of time; the first revision requested from then on
}

type moment struct {
	at  time.Duration
	rev int64
}

func (h *History) bounds(commits map[string][]commit) *bounds {
	b := &bounds{}
	for _, e := range h.Events {
		same := commits[e.Write]
		if len(same) == 0 {
			continue
		}
		rev := same[0].Rev // of several, which I3 reports, the first existed first
		switch e.Kind {
		case Sent:
			b.asked = append(b.asked, moment{e.At, rev})
		case Acked:
			b.heard = append(b.heard, moment{e.At, rev})
		case Read:
			b.heard = append(b.heard, moment{e.Until, rev})
		}
	}
	for _, list := range [][]moment{b.heard, b.asked} {
		slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	}
	for i := 1; i < len(b.heard); i++ {
		b.heard[i].rev = max(b.heard[i].rev, b.heard[i-1].rev)
	}
	for i := len(b.asked) - 2; i >= 0; i-- {
		b.asked[i].rev = min(b.asked[i].rev, b.asked[i+1].rev)
	}
	return b
}

// known is the newest revision that a participant had received before an instant; 0: none. All up
// to it existed.
func (b *bounds) known(at time.Duration) int64 {
	i := sort.Search(len(b.heard), func(i int) bool { return b.heard[i].at >= at })
	if i == 0 {
		return 0
	}
	return b.heard[i-1].rev
}

// future is the first revision that was requested after an instant. Neither that one nor any later
// one existed.
func (b *bounds) future(at time.Duration) int64 {
	i := sort.Search(len(b.asked), func(i int) bool { return b.asked[i].at > at })
	if i == len(b.asked) {
		return math.MaxInt64
	}
	return b.asked[i].rev
}
