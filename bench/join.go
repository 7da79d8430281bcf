package bench

import "time"

var join = Scenario{
	Name:     "join",
	Summary:  "from nothing to leadership, on a live session too; and N candidates at once: until the last is queued",
	Defaults: Options{Rounds: 100, Warmup: 5, Sizes: []int{100, 1000}},
	Regimes: []Term{
		{Name: "cold", Text: "one candidate without a session, in an election without others"},
		{Name: "live", Text: "one candidate on a session that it has already"},
		{Name: "crowd", Text: "N candidates at once, each with a session of its own already; a twentieth of the rounds"},
	},
	Metrics: []Term{
		{Name: "win", Text: "from the first call to leadership", Better: Lower},
		{Name: "requests", Text: "requests from the first call until 50 ms after the win", Better: Lower},
		{Name: "queued", Text: "until the last of the N candidates is queued", Better: Lower},
		{Name: "errors", Text: "campaigns that returned an error to their caller", Better: Lower},
	},
	measure: measureJoin,
}

// settling is how long after a win the candidate's requests are counted: what it sends in the
// background, such as the watch of its own key, is part of the cost.
const settling = 50 * time.Millisecond

func measureJoin(r *run) {
	hosts := r.hostsOf(queueHosts)
	points := []point{{regime: "cold", n: 1, rounds: r.options.Rounds}, {regime: "live", n: 1, rounds: r.options.Rounds}}
	crowd := point{rounds: (r.options.Rounds + 19) / 20, cold: true, queue: true, timeout: turnTimeout}
	points = append(points, r.points(crowd, 30*time.Millisecond, "crowd")...)
	r.measure(points, func(t *turn) {
		switch t.point.regime {
		case "cold":
			before := must(wires(t.ctx, hosts[0]))
			begun := time.Now()
			won := must(t.candidate(hosts[0], t.election(), handoverTTL).campaign(t.ctx))
			t.took("win", won.Sub(begun))
			t.sleep(settling)
			t.counted("requests", must(wires(t.ctx, hosts[0])).minus(before).requests())
		case "live":
			c := t.candidate(hosts[0], t.election(), handoverTTL)
			begun := time.Now()
			t.took("win", must(c.campaign(t.ctx)).Sub(begun))
		case "crowd":
			// Campaigns that return an error are counted; the measurement does not wait for them.
			q := t.newQueue(hosts, t.point.n)
			t.took("queued", q.campaign(q.members...))
			t.counted("errors", int64(q.failed))
			if q.failure != nil {
				t.note("a campaign failed: %v", q.failure)
			}
		}
	})
}
