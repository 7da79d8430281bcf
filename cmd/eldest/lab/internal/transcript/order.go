package transcript

import (
	"cmp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// attribute gives events to the atoms that caused them. Events of one revision that no recorded
// request caused are a separate atom: a lease expired, or an unrecorded client wrote.
func (g *gathering) attribute() {
	causes := make(map[int64]*atom)
	for _, a := range g.atoms {
		if a.rank == rankWrite && causes[a.rev] == nil {
			causes[a.rev] = a
		}
	}
	// The deletion of a lease's keys is a write as well, but if there were no keys its revision may
	// be that of another write.
	for _, a := range g.atoms {
		_, revokes := requestOf(a).(*etcdserverpb.LeaseRevokeRequest)
		if revokes && a.rev != 0 && causes[a.rev] == nil {
			causes[a.rev], a.rank = a, rankWrite
		}
	}
	for _, t := range g.told {
		rev := t.event.Kv.GetModRevision()
		cause := causes[rev]
		if begun := g.begun[t.watch]; begun != nil && cause != nil && cause.end < begun.begin {
			begun.told = append(begun.told, t) // it was over before the watch began, from the past
			continue
		}
		if cause == nil {
			cause = &atom{begin: t.at, end: t.at, rev: rev, rank: rankOutside}
			causes[rev] = cause
			g.add(cause)
		}
		if cause.lane == t.lane && cause.ask != nil && g.ownKey(t) {
			continue
		}
		// A client that received the event may act on it before the answer arrives.
		cause.end = max(cause.begin, min(cause.end, t.at))
		cause.told = append(cause.told, t)
	}
}

// ownKey reports whether a candidate receives the deletion of its own key: as it deleted the key
// itself, it may have canceled the watch, or not.
func (g *gathering) ownKey(t told) bool {
	k, single := g.single[t.watch]
	if !single || t.event.Type != mvccpb.Event_DELETE {
		return false
	}
	last := k[strings.LastIndexByte(k, '/')+1:]
	for id := range g.granted {
		if last == (raw{}).lease(id) {
			return true
		}
	}
	return false
}

// sorted puts atoms in order: an atom that had ended before another one began comes before it;
// atoms that overlapped are ordered by what is the same in each run.
func (g *gathering) sorted() []*atom {
	slices.SortStableFunc(g.atoms, func(a, b *atom) int { return cmp.Compare(a.begin, b.begin) })
	lanes := g.lanes()
	known := int64(0)
	order := make(map[*atom]string, len(g.atoms))
	for _, a := range g.atoms {
		// An atom without a revision belongs to the newest one that was known when it began.
		if known = max(known, a.rev); a.rev == 0 {
			a.rev = known
		}
		order[a] = g.masked(a)
	}
	left := slices.Clone(g.atoms)
	done := make([]*atom, 0, len(left))
	for len(left) > 0 {
		best := -1
		// An atom is ready if it began before all others that are left had ended.
		until := unanswered
		for _, a := range left {
			until = min(until, a.end)
		}
		for i, a := range left {
			if a.begin > until {
				break
			}
			if best < 0 || earlier(a, left[best], lanes, order) {
				best = i
			}
		}
		done = append(done, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return done
}

func earlier(a, b *atom, lanes map[string]int, order map[*atom]string) bool {
	return cmp.Or(
		cmp.Compare(a.rev, b.rev), cmp.Compare(a.rank, b.rank),
		cmp.Compare(lanes[a.lane], lanes[b.lane]), cmp.Compare(order[a], order[b]),
	) < 0
}

// lanes numbers the lanes in the order in which they appear.
func (g *gathering) lanes() map[string]int {
	lanes := make(map[string]int)
	for _, a := range g.atoms {
		if _, ok := lanes[a.lane]; !ok {
			lanes[a.lane] = len(lanes)
		}
	}
	return lanes
}

// masked returns the text of an atom, without what differs from run to run.
func (g *gathering) masked(a *atom) string {
	n := &normal{mask: true, base: 1}
	n.know(g.granted)
	text := ""
	if a.ask != nil {
		text = say(*a.ask, "", n)[0].Text()
	}
	if a.answer != nil {
		for _, e := range say(*a.answer, "", n) {
			text += e.Text()
		}
	}
	return text
}
