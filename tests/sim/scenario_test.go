package sim

import (
	"testing"
	"time"

	"github.com/eldest-io/eldest/tests/sim/rig"
)

func TestTmpConcurrencyScenarios(t *testing.T) {
	sum := map[string]int{}
	viol := map[string]int{}
	t0 := time.Now()
	n := 40
	for seed := range n {
		p := draw(uint64(seed))
		var r *result
		rig.Run(t, func(w *rig.World) { r = play(w, Concurrency, p) })
		for k, v := range r.struck {
			sum[k] += v
		}
		for _, v := range r.violations {
			viol[v.Invariant]++
		}
		sum["tenures"] += r.tenures
		sum["acked"] += r.acked
		sum["virtual"] += int(r.virtual.Seconds())
	}
	t.Log(sum, viol, time.Since(t0)/time.Duration(n))
}
