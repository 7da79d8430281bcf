package bench

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

var fanout = Scenario{
	Name:    "fanout",
	Summary: "the leader changes: until the last of many observers is notified",
	Defaults: Options{
		Rounds: 15, Warmup: 1, Sizes: []int{100, 1000},
		Contenders: []string{contender.Eldest, contender.Concurrency, contender.Herd},
	},
	Regimes: []Term{
		{Name: "one-process", Text: "all observers are in this process"},
		{Name: "slow-mixed", Text: "as one-process, and one observer in ten takes a second for each event; those are not waited for"},
		{Name: "processes", Text: "the observers are spread over four processes, or over as many as --processes sets"},
	},
	Metrics: []Term{
		{Name: "last", Text: "from the call that resigns until the last observer has received the new leader", Better: Lower},
		{Name: "spread", Text: "from the first observer to the last", Better: Lower},
		{Name: "requests", Text: "requests that all observers made for it, without renewals", Better: Lower},
		{Name: "watches", Text: "watches that they opened for it", Better: Lower},
		{Name: "streams", Text: "streams that they opened for it", Better: Lower},
		{Name: "events", Text: "watch events that they received", Better: Lower},
	},
	measure: measureFanout,
}

const (
	// fanoutProcesses is the default number of workers over which the observers are spread.
	fanoutProcesses = 4
	// fanoutTTL is so long that no lease is renewed in a turn: all counted requests are caused by
	// the change.
	fanoutTTL = 5 * time.Minute
)

// measureFanout gives the observers hosts of their own, so that only their requests are counted on
// those hosts.
func measureFanout(r *run) {
	processes := r.options.Processes
	if processes == 0 && r.site.Worker != nil {
		processes = fanoutProcesses
	}
	r.options.Processes = 0
	candidates := r.hostsOf(2)
	here := []host{r.host()}
	observers := map[string][]host{"one-process": here, "slow-mixed": here}
	if r.options.Processes = min(processes, slices.Max(r.options.Sizes)); processes > 0 {
		for range r.options.Processes {
			observers["processes"] = append(observers["processes"], r.host())
		}
	}
	regimes := []string{"one-process", "slow-mixed"}
	if processes > 0 {
		regimes = append(regimes, "processes")
	}
	r.measure(r.points(point{timeout: turnTimeout}, 20*time.Millisecond, regimes...), func(t *turn) {
		hosts := observers[t.point.regime]
		t.fanout(candidates, hosts[:min(len(hosts), t.point.n)])
	})
}

// fanout makes a leader, a successor and observers, and then the leader resigns.
func (t *turn) fanout(candidates, hosts []host) {
	leader, successor, won := t.pair(candidates[0], candidates[1], fanoutTTL)
	slow := 0
	if t.point.regime == "slow-mixed" {
		slow = t.point.n / 10
	}
	var crowds []made
	for i, h := range hosts {
		part := func(of int) int { return of*(i+1)/len(hosts) - of*i/len(hosts) }
		c := must(h.observe(t.ctx, t.contender, leader.election, part(t.point.n), part(slow)))
		t.after(func(ctx context.Context) { _ = c.Close(ctx) })
		crowds = append(crowds, c)
	}
	await := func(key string) (first, last time.Time) {
		for _, c := range crowds {
			f, l, err := c.await(t.ctx, key)
			check(err)
			if first.IsZero() || f.Before(first) {
				first = f
			}
			if l.After(last) {
				last = l
			}
		}
		return first, last
	}
	await(leader.key)
	t.quiet(hosts...)
	before := must(wires(t.ctx, hosts...))
	runtime.GC() // free the memory of other contenders first
	begun := time.Now()
	check(leader.resign(t.ctx))
	check((<-won).err)
	first, last := await(successor.key)
	if !t.quiet(hosts...) {
		check(errors.New("the observers' clients are never quiet"))
	}
	cost := must(wires(t.ctx, hosts...)).minus(before)
	t.took("last", last.Sub(begun))
	t.took("spread", last.Sub(first))
	t.counted("requests", cost.requests()-cost[grants]-cost[renewals])
	t.counted("watches", cost[watches])
	t.counted("streams", cost[streams])
	t.counted("events", cost[events])
}
