package oracle

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// Precedes checks that the order of revisions does not contradict the clock by which
// requests are sent and answered ([Sequence]), and that no read is stale ([Fresh]).
func Precedes(h *History) []Violation { return slices.Concat(Sequence(h), Fresh(h)) }

// Sequence checks writes: one that was sent when a revision was known is a later one.
//
// Nothing says when a revision was made. So one that was there before anybody asked for it
// goes unnoticed as long as nobody had heard of it, or of a later one.
func Sequence(h *History) []Violation {
	var out []Violation
	b := h.bounds()
	for _, e := range h.Events {
		if e.Kind != Sent {
			continue
		}
		for _, c := range b.commits[e.Write] {
			if known := b.known(e.At); c.Rev <= known {
				out = append(out, violated("precedes", e.At, "write %s was applied at revision %d, and was sent when revision %d was known already", e.Write, c.Rev, known))
			}
		}
	}
	return out
}

// Fresh checks reads, of each register by itself: none returns what had been replaced
// when it was asked for, or what nobody had asked for when it was answered. A read sees no
// state that ended at or before the newest revision that was known when it began, and none
// from a revision that cannot have been there when it was over.
func Fresh(h *History) []Violation {
	var out []Violation
	b := h.bounds()
	for _, e := range h.Events {
		if e.Kind != Read {
			continue
		}
		known, first := b.known(e.At), b.future(e.Until)
		switch began, ended, found := b.state(e, first); {
		case !found:
			out = append(out, violated("precedes", e.At, "%s read %q of %q, which the store never had there", e.Who, e.Write, e.Key))
		case began >= first:
			out = append(out, violated("precedes", e.At, "%s read %q of %q as it was from revision %d on, when that could not be: revision %d was not asked for yet", e.Who, e.Write, e.Key, began, first))
		case ended <= known:
			out = append(out, violated("precedes", e.At, "%s read %q of %q as it was until revision %d, when revision %d was known already", e.Who, e.Write, e.Key, ended, known))
		}
	}
	return out
}

// bounds ties revisions, of which nobody knows when they were made, to the clock: what
// somebody had heard of was there, and what nobody had asked for yet was not.
type bounds struct {
	commits   map[string][]commit // by name
	registers map[string][]commit
	heard     []moment // in the order of time; the newest revision heard of by then
	asked     []moment // in the order of time; the first revision asked for from then on
}

type moment struct {
	at  time.Duration
	rev int64
}

func (h *History) bounds() *bounds {
	b := &bounds{commits: h.byName(), registers: map[string][]commit{}}
	for _, c := range h.commits() {
		if !c.Opens {
			b.registers[c.register] = append(b.registers[c.register], c)
		}
	}
	for _, e := range h.Events {
		same := b.commits[e.Write]
		if len(same) == 0 {
			continue
		}
		rev := same[0].Rev // of several, which I3 reports, the first was there first
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

// known is the newest revision of which somebody had heard before an instant; 0: of none.
// All up to it were there.
func (b *bounds) known(at time.Duration) int64 {
	i := sort.Search(len(b.heard), func(i int) bool { return b.heard[i].at >= at })
	if i == 0 {
		return 0
	}
	return b.heard[i-1].rev
}

// future is the first revision that was asked for after an instant. Neither that one nor
// any later one was there.
func (b *bounds) future(at time.Duration) int64 {
	i := sort.Search(len(b.asked), func(i int) bool { return b.asked[i].at > at })
	if i == len(b.asked) {
		return math.MaxInt64
	}
	return b.asked[i].rev
}

// state finds the state of a register that a read returned: the revisions that began it
// and ended it, 0 and [math.MaxInt64] where none did. Of several in which nothing was
// there, it is the last one that began before the revision first, which is the reader's
// best case.
func (b *bounds) state(read Event, first int64) (began, ended int64, found bool) {
	changes := b.registers[read.Key]
	ended = math.MaxInt64
	if read.Write == "" {
		found = true // before the first write
		if len(changes) > 0 {
			ended = changes[0].Rev
		}
	}
	for i, c := range changes {
		next := int64(math.MaxInt64)
		if i+1 < len(changes) {
			next = changes[i+1].Rev
		}
		switch {
		case read.Write == "" && c.Deleted && c.Rev < first:
			began, ended = c.Rev, next
		case read.Write != "" && c.name == read.Write:
			return c.Rev, next, !c.Deleted
		}
	}
	return began, ended, found
}
