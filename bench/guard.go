package bench

import (
	"fmt"
	"time"
)

var guard = Scenario{
	Name:     "guard",
	Summary:  "a leader's guarded write compared with an unguarded one",
	Defaults: Options{Rounds: 2000, Warmup: 50},
	Regimes: []Term{
		{Name: "put", Text: "leaders of all contenders write in turn, one write at a time"},
	},
	Metrics: []Term{
		{Name: "put", Text: "one write, under the protection that the contender offers; the floor's has none", Better: Lower},
	},
	measure: measureGuard,
}

// measureGuard lets one leader of each contender write for as long as the scenario lasts. The
// leaders write in turn, so that a slow disk is slow for all of them.
func measureGuard(r *run) {
	h := r.host()
	tenures := map[string]*turn{} // their clean-up is done at the end
	leaders := map[string]*candidate{}
	defer func() {
		for _, t := range tenures {
			t.undoAll()
		}
	}()
	r.measure([]point{{regime: "put", n: 1, rounds: r.options.Rounds}}, func(t *turn) {
		leader := leaders[t.contender]
		if leader == nil {
			if last := tenures[t.contender]; last != nil {
				last.undoAll() // the leader may be the one that failed
			}
			own := &turn{run: r, ctx: t.ctx, contender: t.contender}
			tenures[t.contender] = own
			leader = own.candidate(h, t.election(), handoverTTL)
			must(leader.campaign(t.ctx))
			leaders[t.contender] = leader
		}
		begun := time.Now()
		err := leader.put(t.ctx, fmt.Sprintf("%s-put/%s", r.name, t.contender))
		t.took("put", time.Since(begun))
		if err != nil {
			leaders[t.contender] = nil // the next turn makes a new leader
		}
		check(err)
	})
}
