package bench

import "time"

var sessions = Scenario{
	Name:     "sessions",
	Summary:  "processor time and requests of N sessions on one client that are only kept alive",
	Defaults: Options{Rounds: 3, Sizes: []int{200}, TTLs: []time.Duration{10 * time.Second}},
	Regimes: []Term{
		{Name: "rest", Text: "N sessions on one client are kept alive for two TTLs, without candidates"},
	},
	Metrics: []Term{
		{Name: "cpu", Text: "processor time of the client and all members in one second", Better: Lower},
		{Name: "client-cpu", Text: "that of the client's process alone", Better: Lower},
		{Name: "renewals", Text: "renewals of all sessions in one TTL; neither direction is better"},
		{Name: "questions", Text: "requests to a majority in one TTL; neither direction is better"},
	},
	measure: measureSessions,
}

func measureSessions(r *run) {
	ttl := r.granted(r.options.TTLs[0])
	r.measure(r.points(point{cold: true, timeout: turnTimeout + 4*ttl}, 30*time.Millisecond, "rest"), func(t *turn) {
		on := host{t.local()}
		t.parallel(t.point.n, func(int) { t.open(on, ttl) })
		t.sleep(ttl)
		const ttls = 2
		before := t.usage(on)
		t.sleep(ttls * ttl)
		used := t.usage(on).minus(before)
		t.took("client-cpu", used.perSecond(used.cpu.Seconds()))
		if used.members != nil {
			t.took("cpu", used.perSecond(used.cpu.Seconds()+used.members[cpuSeconds]))
		}
		t.counted("renewals", used.wire[renewals]/ttls)
		t.counted("questions", used.wire[questions]/ttls)
	})
}
