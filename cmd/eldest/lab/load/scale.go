package load

import (
	"fmt"
	"math"
	"time"
)

// Span is a duration that JSON shows as Go writes it.
type Span time.Duration

// MarshalText writes 1m30s and the like.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// Scale is the size of the load, and its duration.
type Scale struct {
	// For is how long the load lasts, from when all participants have joined.
	For Span `json:"for"`
	// AtMost is how long it continues if it has not been reached by then, because the machine is
	// busy; 0: no longer than For.
	AtMost Span `json:"at_most,omitempty"`
	// Seed decides which participants depart, and how.
	Seed uint64 `json:"seed"`

	// Heartbeat and Election are etcd's timeouts.
	Heartbeat Span `json:"heartbeat"`
	Election  Span `json:"election"`

	// Candidates are in one election, each with a session of its own with this TTL. They share this
	// number of Clients of etcd.
	Candidates int  `json:"candidates"`
	Clients    int  `json:"clients"`
	TTL        Span `json:"ttl"`
	// PerSecond is how many of them depart each second. Each is followed by another one.
	PerSecond float64 `json:"departures_per_second"`
	// LeaderCrash is the time between two crashes of leaders; after each no candidate leads until
	// the lease has expired.
	LeaderCrash Span `json:"leader_crash_every"`

	// Observers is the number of subscriptions, each read by a goroutine of its own, and Watchers
	// the number of observe.Observers that they share, each with a client of its own.
	Observers int `json:"observers"`
	Watchers  int `json:"watchers"`

	// Nodes is the number of nodes of a leader-elected service. Every CallEvery, this number of
	// Calls is sent at once to those that do not lead. A leader resigns after HandOver.
	Nodes     int  `json:"nodes"`
	Calls     int  `json:"calls_at_once"`
	CallEvery Span `json:"calls_every"`
	HandOver  Span `json:"service_hand_over_every"`

	// KillEvery is the time between the kills of two members, one after the other, and DownFor how
	// long each is down.
	KillEvery Span `json:"member_killed_every"`
	DownFor   Span `json:"member_down_for"`

	// Inspect is the time between two inspections: of the queue, of what was written, of
	// the memory.
	Inspect Span `json:"inspected_every"`
}

// Everyday is a small load, for a machine that is also used otherwise: it takes a twentieth of a
// processor, with the race detector a fifth.
func Everyday() Scale {
	return Scale{
		For: Span(4 * time.Second), AtMost: Span(90 * time.Second), Seed: 1,
		Heartbeat: Span(50 * time.Millisecond), Election: Span(500 * time.Millisecond),
		Candidates: 50, Clients: 3, TTL: Span(3 * time.Second), PerSecond: 8, LeaderCrash: Span(2 * time.Second),
		Observers: 1000, Watchers: 2,
		Nodes: 3, Calls: 50, CallEvery: Span(time.Second), HandOver: Span(1500 * time.Millisecond),
		// Each election in etcd prolongs all leases, and most kills cause one, as the member that is next
		// is often the one that has just been elected: more often than once in a TTL and two elections,
		// the lease of a leader that crashed would never expire.
		KillEvery: Span(5500 * time.Millisecond), DownFor: Span(500 * time.Millisecond),
		Inspect: Span(time.Second),
	}
}

// Full is the load that the library must carry.
//
// The clients are shared because 1,000 clients of three members are 3,000 connections, which would
// measure gRPC's handshakes on two processors: see Scale.Clients, which a flag can raise.
func Full() Scale {
	return Scale{
		For: Span(10 * time.Minute), Seed: 1,
		Heartbeat: Span(100 * time.Millisecond), Election: Span(time.Second),
		Candidates: 1000, Clients: 50, TTL: Span(10 * time.Second), PerSecond: 10, LeaderCrash: Span(47 * time.Second),
		Observers: 10_000, Watchers: 10,
		Nodes: 3, Calls: 1000, CallEvery: Span(5 * time.Second), HandOver: Span(17 * time.Second),
		KillEvery: Span(20 * time.Second), DownFor: Span(5 * time.Second),
		Inspect: Span(4 * time.Second),
	}
}

// By returns the scale with a part of all participants, at the same paces: for a machine that
// cannot carry the full load.
func (s Scale) By(part float64) Scale {
	for _, n := range []*int{&s.Candidates, &s.Clients, &s.Observers, &s.Calls} {
		*n = max(1, int(float64(*n)*part))
	}
	s.PerSecond *= part
	return s
}

// patience is how long anything may take before it counts as stuck: the expiry of a lease that an
// election in etcd has just prolonged, and then more than anything takes on a machine that is
// overloaded.
func (s Scale) patience() time.Duration { return 2*time.Duration(s.TTL) + 30*time.Second }

// reached is the part of the load that must have been reached.
const reached = 0.8

// missed lists the parts of the load that were not reached in the time that the scale gives; a run
// that missed something proves nothing.
func (s Scale) missed(b *book) (missed []string) {
	want := func(n float64, names ...string) {
		for _, name := range names {
			if got := b.counted(name); float64(got) < reached*n {
				missed = append(missed, fmt.Sprintf("%s: %d of %.0f", name, got, n))
			}
		}
	}
	seconds := time.Duration(s.For).Seconds()
	// What has a ticker of its own has had one tick less when the run ends.
	every := func(pace Span) float64 { return max(1, seconds/time.Duration(pace).Seconds()-1) }
	departures := seconds * s.PerSecond
	want(departures, "departures")
	want(departures/100, "departures: "+evicted.name, "departures: "+crash.name) // a twentieth is drawn
	// There is none while no candidate leads: after a crash, or if the machine is slow to hand over.
	// Half of the departures are meant for the leader, if a candidate leads at that moment.
	want(departures/20, "tenures", "convergences", "guarded writes acknowledged")
	want(every(s.LeaderCrash), "departures: "+leaderCrash.name)
	want(every(s.KillEvery), "compactions", "members killed", "members that came back")
	want(every(s.HandOver), "tenures of the service")
	want(every(s.CallEvery), "bursts")
	// The calls of a burst that comes while a member is killed may end otherwise.
	want(every(s.CallEvery)*float64(s.Calls)/2, "calls: OK")
	want(math.Floor(seconds/60), "calls: Unknown") // no kill strikes a burst of a short run
	return missed
}
