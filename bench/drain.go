package bench

import "time"

var drain = Scenario{
	Name:     "drain",
	Summary:  "hand-overs one after another through a queue of N: what one costs as N grows",
	Defaults: Options{Rounds: 5, Sizes: []int{10, 100}},
	least:    2,
	Regimes: []Term{
		{Name: "queue", Text: "N candidates wait; each leader resigns at once; 200 hand-overs or 20 s of each queue at most"},
	},
	Metrics: []Term{
		{Name: "handover", Text: "from the call that resigns to the return of the next one's campaign", Better: Lower},
	},
	measure: measureDrain,
}

// drainLimit and drainTime are how many hand-overs of one queue are measured, and for how long. In
// a queue of 4,000 the queue has nearly the same length at all of them. For a contender whose
// hand-over makes the server sort the whole queue for every waiting candidate, one takes half a
// second at 1,000.
const (
	drainLimit = 200
	drainTime  = 20 * time.Second
)

func measureDrain(r *run) {
	hosts := r.hostsOf(queueHosts)
	r.measure(r.points(point{cold: true, queue: true, timeout: 2 * turnTimeout}, 60*time.Millisecond, "queue"), func(t *turn) {
		q := t.newQueue(hosts, t.point.n)
		q.campaign(q.members...)
		q.monitor.stop() // from here on only requests of the candidates are measured
		// A candidate that is queued is not finished: it must still find and watch its predecessor.
		t.quiet(hosts...)
		leader := q.next()
		first, planned := time.Now(), min(t.point.n-1, drainLimit)
		for range planned {
			if time.Since(first) > drainTime {
				t.note("a turn took more than %v and ended before its %d hand-overs were complete", drainTime, planned)
				return
			}
			begun := time.Now()
			check(leader.resign(t.ctx))
			leader = q.next()
			t.took("handover", leader.outcome.at.Sub(begun))
		}
	})
}
