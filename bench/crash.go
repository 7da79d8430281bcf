package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

var crash = Scenario{
	Name:    "crash",
	Summary: "the leader fails: from that moment to the successor's win, and whether two ever lead",
	Defaults: Options{
		Rounds: 40, TTLs: []time.Duration{2 * time.Second},
		Contenders: append([]string{contender.Kept, contender.Heartbeat500ms, contender.Heartbeat1s}, usual...),
	},
	Regimes: []Term{
		{Name: "kill", Text: "the leader's process is killed (SIGKILL); n is the lease's TTL in ms, as granted"},
		{Name: "kill-keeper", Text: "its keeper is killed, and then the process: what has a keeper falls back to the lease"},
		{Name: "stop", Text: "the leader's process is stopped (SIGSTOP), and continued when the successor has won"},
		{Name: "cut", Text: "the leader's client loses its network, and has it again when the successor has won"},
	},
	Metrics: []Term{
		{Name: "win", Text: "from the fault to the successor's win. If only the lease's end replaces a leader, this is the rest of the lease: a contender that renews more often has more left, and its successor wins later. Compare it with bound, not with other contenders", Better: Lower},
		{Name: "bound", Text: "the upper bound with a lease alone: the TTL plus etcd's expiry scan of half a second, for a lease that was renewed at the moment of the fault"},
		{Name: "two-leaders", Text: "1 for a round in which the old leader's tenure held after the successor's win, else 0; checked every 5 ms, and after a stop and a cut for 200 ms more; a process that was killed cannot lead, so it is 0 then", Better: Lower},
	},
	measure: measureCrash,
}

// measureCrash runs each leader in a process of its own, which ends with the turn.
func measureCrash(r *run) {
	if r.site.Worker == nil {
		check(fmt.Errorf("%w: crash: no processes can be started here, and only a process can be killed", ErrInvalid))
	}
	isKept := func(name string) bool { return name == contender.Kept }
	faults := []fault{
		{regime: "kill", inject: func(_ context.Context, h host) error { return h.kill() }},
		{regime: "kill-keeper", among: isKept, lease: true, inject: func(ctx context.Context, h host) error {
			pid, err := h.keeper(ctx)
			if err != nil {
				return err
			}
			if p, err := os.FindProcess(pid); err == nil && pid > 0 {
				_ = p.Kill() // it may have ended already
			}
			return h.kill()
		}},
		{
			regime: "stop", among: func(name string) bool { return !isKept(name) }, // a keeper has no effect on a stopped process
			inject: func(_ context.Context, h host) error { return h.suspend(true) },
			undo:   func(_ context.Context, h host) error { return h.suspend(false) },
		},
		{
			regime: "cut", among: func(name string) bool { return !isKept(name) },
			inject: func(ctx context.Context, h host) error { return h.cut(ctx, true) },
			undo:   func(ctx context.Context, h host) error { return h.cut(ctx, false) },
		},
	}
	for i := range faults {
		faults[i].watched = true
		faults[i].host = func(t *turn, _ int) host {
			h := must(newHost(r.site, true))
			t.after(func(context.Context) { _ = h.kill() })
			return h
		}
		faults[i].sample = func(t *turn, f failover, ttl time.Duration) {
			t.took("win", f.succeeded.Sub(f.began))
			if _, lease := t.notices(faults[i], ttl); lease {
				t.took("bound", ttl+expiryScan)
			}
			if !f.leader.notifies {
				return // this contender does not detect a loss
			}
			two := int64(0)
			if f.held.After(f.succeeded) {
				two = 1
			}
			t.counted("two-leaders", two)
		}
	}
	r.failovers(faults...)
}
