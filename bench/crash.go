package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

func init() {
	scenario(Scenario{
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
			{Name: "win", Text: "from the kill to the successor's win: what was left of the lease; who renews more often has more left, and wins later: look at it beside bound, not beside others", Better: Lower},
			{Name: "bound", Text: "what nobody can promise to beat: the TTL and etcd's expiry scan of half a second, for a lease that was renewed at the very moment of the kill"},
		},
		measure: crash,
	})
}

// crash kills a worker for every sample, and measures
//
//	win    from the kill to the successor's win
//	bound  the TTL and etcd's expiry scan, by which the lease must be found expired if
//	       the leader renewed it at the very moment of the kill
//
// Nobody can win sooner than etcd lets the lease run out: this is a figure of the lease
// and of the rhythm of its renewals. Who renews more often fails over later, for what
// was left of the lease is longer on average; that is the price of losing it less
// often.
func crash(ctx context.Context, r *run) error {
	if r.site.Spawn == nil {
		return fmt.Errorf("%w: crash: no processes can be started here, and only a process can be killed", ErrInvalid)
	}
	return r.failovers(ctx, failing{
		regime: "kill",
		host: func(ctx context.Context, t *turn, _ int) (Host, error) {
			h, err := spawn(ctx, r.site)
			if err != nil {
				return nil, err
			}
			t.after(func(context.Context) {
				_ = h.Close() // it was killed, unless the turn failed before
			})
			return h, nil
		},
		strike: func(_ context.Context, h Host) error { return h.Kill() },
		note: func(t *turn, f failover, ttl time.Duration) {
			t.took("win", f.succeeded.Sub(f.began))
			t.took("bound", ttl+expiryScan)
		},
	})
}
