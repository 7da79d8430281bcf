package bench

import (
	"math/rand/v2"
	"strings"
	"time"
)

var handover = Scenario{
	Name:     "handover",
	Summary:  "a leader resigns: from that call to the successor's win",
	Defaults: Options{Rounds: 200, Warmup: 5, Load: 300},
	Regimes: []Term{
		{Name: "queued", Text: "the leader resigns 15 ms after its successor was queued: the server may not have created the successor's watch yet"},
		{Name: "settled", Text: "the leader resigns 300 ms after its successor was queued: all watches are created"},
		{Name: "queued-load", Text: "as queued, while the cluster is written to (--load)"},
		{Name: "settled-load", Text: "as settled, while the cluster is written to (--load)"},
	},
	Metrics: []Term{
		{Name: "win", Text: "from the call that resigns to the return of the successor's campaign", Better: Lower},
		{Name: "resign", Text: "how long that call takes to return", Better: Lower},
	},
	measure: measureHandover,
}

const (
	// handoverTTL is longer than a turn: no lease expires in it.
	handoverTTL = 60 * time.Second
	// serverScan is the period at which etcd starts watches whose start revision is in the past
	// (watchResyncPeriod in its package mvcc).
	serverScan = 100 * time.Millisecond
)

func measureHandover(r *run) {
	hosts := r.hostsOf(2)
	var points []point
	for _, regime := range []string{"queued", "settled", "queued-load", "settled-load"} {
		points = append(points, point{regime: regime, n: 2, rounds: r.options.Rounds, loaded: strings.HasSuffix(regime, "-load")})
	}
	r.measure(points, func(t *turn) {
		t.sleep(rand.N(serverScan)) // otherwise turns would be in step with the scan
		pair := rand.Perm(len(hosts))
		leader, _, won := t.pair(hosts[pair[0]], hosts[pair[1]], handoverTTL)
		if strings.HasPrefix(t.point.regime, "queued") {
			t.sleep(15 * time.Millisecond)
		} else {
			t.sleep(300 * time.Millisecond)
		}
		begun := time.Now()
		check(leader.resign(t.ctx))
		resigned, o := time.Now(), <-won
		check(o.err)
		t.took("win", o.at.Sub(begun))
		t.took("resign", resigned.Sub(begun))
	})
}
