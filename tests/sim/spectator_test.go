package sim

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/oracle"
	"github.com/eldest-io/eldest/tests/sim/rig"
)

// An observer behind a bad network, over random scenarios (G6): what it reports
// was true at the revision it names, never goes back, and says so when nobody
// leads and when it does not know. At the end it knows the leader.
func TestObserverNeverGoesBack(t *testing.T) {
	const scenarios = 60
	kinds := map[eldest.Kind]int{}
	for n := range scenarios {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			var seen []sighting
			var last eldest.State
			var truth int64
			var r *result
			rig.Run(t, func(w *rig.World) {
				var v *spectator
				r = play(w, Eldest, draw(uint64(n)), &audience{
					begin: func(s *stage) { v = newSpectator(s, uint64(n)) },
					quiet: func(s *stage) {
						seen = v.leave()
						last, truth = seen[len(seen)-1].state, s.history().LeaderAt(w.Server.Rev())
					},
				})
			})
			require.NotNil(t, r, "the scenario did not come to its end")
			for _, s := range seen {
				kinds[s.state.Kind]++
			}
			if bad := judge(seen, r.history); len(bad) > 0 {
				t.Errorf("%v\n%v", bad, r)
			}
			require.NotEqual(t, eldest.Unknown, last.Kind, "healed long ago: %v", last.Reason)
			require.EqualValues(t, truth, last.Leader.Token, "the last report was %v", last)
		})
	}
	t.Logf("reported: %v", kinds)
	for _, k := range []eldest.Kind{eldest.Unknown, eldest.Nobody, eldest.Led} {
		require.NotZero(t, kinds[k], "INVALID: %s was never reported", k)
	}
}

// The judge catches observers that go back, make up leaders, and keep quiet.
func TestJudge(t *testing.T) {
	h := &oracle.History{About: oracle.About{Prefix: prefix}, Changes: []oracle.Change{
		{Rev: 2, Key: prefix + "a", Create: 2}, {Rev: 3, Key: prefix + "b", Create: 3},
		{Rev: 4, Key: prefix + "a", Create: 2, Deleted: true}, {Rev: 5, Key: prefix + "b", Create: 3, Deleted: true},
	}}
	led := func(rev int64, token eldest.Token, name string, lease int64) sighting {
		return sighting{time.Second, eldest.State{Kind: eldest.Led, Revision: rev, Leader: eldest.Leader{Token: token, Key: prefix + name, Lease: lease}}}
	}
	nobody := func(rev int64) sighting {
		return sighting{time.Second, eldest.State{Kind: eldest.Nobody, Revision: rev}}
	}
	unknown := func(why error) sighting { return sighting{time.Second, eldest.State{Reason: why}} }
	for name, c := range map[string]struct {
		seen  []sighting
		found int
	}{
		"in order":           {[]sighting{unknown(errors.New("not yet")), nobody(1), led(2, 2, "a", 0xa), led(4, 3, "b", 0xb), nobody(5)}, 0},
		"skips":              {[]sighting{led(3, 2, "a", 0xa), nobody(5)}, 0},
		"going back":         {[]sighting{led(4, 3, "b", 0xb), led(3, 2, "a", 0xa)}, 2}, // in revision and in token
		"a key that is gone": {[]sighting{led(4, 2, "a", 0xa)}, 1},
		"a waiter":           {[]sighting{led(3, 3, "b", 0xb)}, 1},
		"nobody, wrongly":    {[]sighting{nobody(3)}, 1},
		"no reason":          {[]sighting{unknown(nil)}, 1},
		"another's lease":    {[]sighting{led(2, 2, "a", 0xb)}, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Len(t, judge(c.seen, h), c.found) })
	}
}
