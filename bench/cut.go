package bench

import (
	"context"
	"time"
)

var cut = Scenario{
	Name:     "cut",
	Summary:  "the leader loses its network: to the successor's win, and whether two lead at once",
	Defaults: Options{Rounds: 20, Warmup: 1, TTLs: []time.Duration{2 * time.Second}},
	Regimes: []Term{
		{Name: "cut", Text: "the leader's client loses its network; n is the lease's TTL in ms, as granted"},
	},
	Metrics: []Term{
		{Name: "win", Text: "from the cut to the successor's win: what was left of the lease; a contender that renews more often has more left, and its successor wins later", Better: Lower},
		{Name: "loss", Text: "from the cut until the old leader's user is notified", Better: Lower},
		{Name: "gap", Text: "from that to the win: no candidate leads meanwhile; negative if two lead"},
		{Name: "two-leaders", Text: "1 for a round in which two led at once, else 0", Better: Lower},
	},
	measure: measureCut,
}

// measureCut uses leaders on hosts that live as long as the run, like the clients of real leaders:
// the timers of a new client are in step with those of its session. Hence the warm-up.
func measureCut(r *run) {
	hosts := map[string][]host{} // of the leaders, by contender
	r.failovers(fault{
		regime: "cut",
		host: func(t *turn, i int) host {
			if i == len(hosts[t.contender]) {
				hosts[t.contender] = append(hosts[t.contender], r.host())
			}
			return hosts[t.contender][i]
		},
		inject: func(ctx context.Context, h host) error { return h.cut(ctx, true) },
		undo:   func(ctx context.Context, h host) error { return h.cut(ctx, false) },
		sample: func(t *turn, f failover, _ time.Duration) {
			t.took("win", f.succeeded.Sub(f.began))
			if f.lost.IsZero() {
				return
			}
			gap, two := f.succeeded.Sub(f.lost), int64(0)
			if gap < 0 {
				two = 1
			}
			t.took("loss", f.lost.Sub(f.began))
			t.took("gap", gap)
			t.counted("two-leaders", two)
		},
	})
}
