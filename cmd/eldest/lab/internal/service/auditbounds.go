package service

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// bounds ties revisions, of which nobody knows when they were made, to the client's
// clock. It is one clock, so it orders the requests: what the client had heard of was
// there, and what it had not asked for yet was not.
type bounds struct {
	heard []moment // in the order of time; the newest revision heard of by then
	asked []moment // in the order of time; the first revision asked for from then on
}

type moment struct {
	at       time.Time
	revision int64
}

func (x *exhibits) bounds() bounds {
	var b bounds
	newest := int64(0)
	for _, a := range x.attempts { // in the order of their ends
		if a.Outcome == Done && a.Revision > newest {
			newest = a.Revision
			b.heard = append(b.heard, moment{a.At, newest})
		}
	}
	for id, records := range x.byID {
		if a := x.asked[id]; a != nil {
			for _, e := range records {
				b.asked = append(b.asked, moment{a.Begin, e.Revision})
			}
		}
	}
	slices.SortFunc(b.asked, func(a, b moment) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for i := len(b.asked) - 2; i >= 0; i-- {
		b.asked[i].revision = min(b.asked[i].revision, b.asked[i+1].revision)
	}
	return b
}

// known is the newest revision that the client had heard of before t; 0: of none. All
// up to it were there.
func (b bounds) known(t time.Time) int64 {
	i := sort.Search(len(b.heard), func(i int) bool { return !b.heard[i].at.Before(t) })
	if i == 0 {
		return 0
	}
	return b.heard[i-1].revision
}

// future is the first revision that the client asked for after t. Neither that one nor
// any later one was there at t.
func (b bounds) future(t time.Time) int64 {
	i := sort.Search(len(b.asked), func(i int) bool { return b.asked[i].at.After(t) })
	if i == len(b.asked) {
		return math.MaxInt64
	}
	return b.asked[i].revision
}
