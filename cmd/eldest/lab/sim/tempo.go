package sim

import "time"

// tempo is how fast things go that are not faults.
type tempo struct {
	pace    time.Duration // between two guarded writes of a leader
	rest    time.Duration // the longest pause between two campaigns
	reads   time.Duration // between two reads of somebody who stands by, of which few are needed: the store is known from the inside
	linger  time.Duration // how long leaders lead at most before they resign; 0: until told
	recheck time.Duration // of watches; 0: the default
	tick    time.Duration // of etcd; 0: its default
	settle  time.Duration // the time in which all comes right by itself, beside two TTLs
}

// usual is that of most scenarios.
var usual = tempo{pace: 500 * time.Millisecond, rest: time.Second, reads: 8 * time.Second, settle: 12 * time.Second}
