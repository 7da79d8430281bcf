package load

import (
	"fmt"
	"time"
)

// reached is the part of the load that must have been reached.
const reached = 0.8

// missed lists what of the load was not reached in the time that the scale gives; a run of
// which something was missed proves nothing.
func (s Scale) missed(book *Book) (missed []string) {
	seconds := time.Duration(s.For).Seconds()
	// What begins with a beat of its own has had one less when the run ends.
	every := func(pace Span) float64 { return max(1, seconds/time.Duration(pace).Seconds()-1) }
	for _, wanted := range []struct {
		n    float64
		what string
	}{
		{seconds * s.PerSecond, "departures"},
		// There is none while nobody leads: after a crash, or where the machine is slow to
		// hand over. Half of those who depart are to lead, if anybody does at that moment.
		{seconds * s.PerSecond / 20, "tenures"},
		{every(s.CallEvery), "bursts"},
		// Those of a burst that comes while a member dies may end otherwise.
		{every(s.CallEvery) * float64(s.Calls) / 2, "calls: OK"},
		{every(s.KillEvery), "compactions"},
		{every(s.KillEvery), "members killed"},
		{every(s.KillEvery), "members that came back"},
		{every(s.LeaderCrash), "departures: " + string(leaderCrash)},
		{every(s.HandOver), "tenures of the service"},
		{seconds * s.PerSecond / 20, "convergences"},
		{seconds * s.PerSecond / 20, "guarded writes acknowledged"},
		{seconds * s.PerSecond / 100, "departures: " + string(evict)}, // a twentieth
		{seconds * s.PerSecond / 100, "departures: " + string(crash)},
	} {
		if got := book.counted(wanted.what); float64(got) < reached*wanted.n {
			missed = append(missed, fmt.Sprintf("%s: %d of %.0f", wanted.what, got, wanted.n))
		}
	}
	return missed
}
