package bench

import (
	"context"
	"time"
)

func init() {
	scenario(Scenario{
		Name:     "cut",
		Summary:  "the leader loses its network: to the successor's win, and whether two lead at once",
		Defaults: Options{Rounds: 20, Warmup: 1, TTLs: []time.Duration{2 * time.Second}},
		Regimes: []Term{
			{Name: "cut", Text: "the leader's client loses its network; n is the lease's TTL in ms, as granted"},
		},
		Metrics: []Term{
			{Name: "win", Text: "from the cut to the successor's win: what was left of the lease; who renews more often has more left, and wins later", Better: Lower},
			{Name: "loss", Text: "from the cut until the old leader's user is told", Better: Lower},
			{Name: "gap", Text: "from that to the win: nobody leads meanwhile; negative while two do"},
			{Name: "two-leaders", Text: "1 for a round in which two led at once, else 0", Better: Lower},
		},
		measure: cut,
	})
}

// cut takes the network away from a leader's client, and measures
//
//	win          from the cut to the successor's win
//	loss         from the cut to the moment at which the old leader's user is told
//	gap          from that moment to the win: negative while two lead at once
//	two-leaders  whether they did, 0 or 1
//
// A contender that tells nobody has a win only. Nothing of the contender's is asked
// while the network is away; the old leader's user does what users do: wait for word.
//
// The leaders' hosts live as long as the run, as leaders' clients do: how a client's
// timers stand to each other, and to the beginning of a session, is decided by time and
// not by the client's being brand-new. Hence the warm-up.
func cut(ctx context.Context, r *run) error {
	hosts := map[string][]Host{} // of the leaders, by contender
	return r.failovers(ctx, failing{
		regime: "cut",
		host: func(_ context.Context, t *turn, i int) (Host, error) {
			mine := hosts[t.contender]
			if i == len(mine) {
				h, err := r.host(ctx)
				if err != nil {
					return nil, err
				}
				mine = append(mine, h)
				hosts[t.contender] = mine
			}
			return mine[i], nil
		},
		strike: func(ctx context.Context, h Host) error { return h.Cut(ctx, true) },
		mend:   func(ctx context.Context, h Host) error { return h.Cut(ctx, false) },
		told:   true,
		note:   func(t *turn, f failover, _ time.Duration) { t.noteCut(f) },
	})
}

func (t *turn) noteCut(f failover) {
	t.took("win", f.succeeded.Sub(f.began))
	if f.lost.IsZero() {
		return
	}
	gap := f.succeeded.Sub(f.lost)
	t.took("loss", f.lost.Sub(f.began))
	t.took("gap", gap)
	var both int64
	if gap < 0 {
		both = 1
	}
	t.sample("two-leaders", Counts, both)
}
