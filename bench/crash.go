package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

var crash = Scenario{
	Name:    "crash",
	Summary: "the leader's process is killed: from that moment to the successor's win",
	Defaults: Options{
		Rounds: 40, TTLs: []time.Duration{2 * time.Second},
		Contenders: append([]string{contender.Kept}, usual...),
	},
	Regimes: []Term{
		{Name: "kill", Text: "the leader's process is killed; n is the lease's TTL in ms, as granted"},
	},
	Metrics: []Term{
		{Name: "win", Text: "from the kill to the successor's win: what was left of the lease; a contender that renews more often has more left, and its successor wins later: compare it with bound, not with others", Better: Lower},
		{Name: "bound", Text: "what nobody can promise to beat: the TTL and etcd's expiry scan of half a second, for a lease that was renewed at the very moment of the kill"},
	},
	measure: measureCrash,
}

func measureCrash(r *run) {
	if r.site.Worker == nil {
		check(fmt.Errorf("%w: crash: no processes can be started here, and only a process can be killed", ErrInvalid))
	}
	r.failovers(fault{
		regime: "kill", deadly: true,
		host: func(t *turn, _ int) host {
			h := must(newHost(r.site, true))
			t.after(func(context.Context) { _ = h.close() }) // it was killed, unless the turn failed before
			return h
		},
		inject: func(_ context.Context, h host) error { return h.kill() },
		sample: func(t *turn, f failover, ttl time.Duration) {
			t.took("win", f.succeeded.Sub(f.began))
			t.took("bound", ttl+expiryScan)
		},
	})
}
