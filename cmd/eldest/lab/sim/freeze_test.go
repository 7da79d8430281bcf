package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// A leader that was stopped until its lease had expired and another one led is not sure
// at its first use after that: whether it first looks, or first takes in what arrived
// meanwhile, a reply to a renewal among it.
func TestStoppedLeaderIsNotSure(t *testing.T) {
	for _, asked := range []bool{true, false} {
		rig.Run(t, func(w *rig.World) {
			ctx := w.T.Context()
			s := newStage(w, contender.Ours{}, 4*time.Second)
			a, b := s.enter("a"), s.enter("b")
			a.begin(ctx)
			s.until("a leads", a.leads)
			b.begin(ctx)
			s.until("b waits", func() bool { return len(s.queue()) == 2 })
			// At the reply of a renewal, which waits for a to go on.
			a.host.Set(&rig.Trap{Match: matcher("renewal"), After: true, Strike: func() {
				goesOn, first := a.stop()
				require.True(w.T, first)
				s.log.Add(oracle.Event{Who: "a", Kind: oracle.Trouble, Until: w.Now() + time.Minute})
				<-goesOn
			}})
			s.until("a is stopped", func() bool { return !a.running() })
			s.until("b leads", b.leads)
			time.Sleep(2 * s.ttl)
			require.True(w.T, a.goOn(asked))
			require.False(w.T, a.leads())
			require.Empty(w.T, s.finish())
			answers := 0
			for _, e := range s.history().Events {
				require.NotEqual(w.T, oracle.Sure, e.Kind)
				if e.Kind == oracle.NotSure {
					answers++
				}
			}
			if asked { // else its end may have been told before anybody asked
				require.Equal(w.T, 1, answers, "a was asked once when it went on")
			}
		})
	}
}

// A stop that is shorter than the lease costs nothing.
func TestShortStopCostsNothing(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		s := newStage(w, contender.Ours{}, 10*time.Second)
		a := s.enter("a")
		a.begin(w.T.Context())
		s.until("a leads", a.leads)
		token := a.token()
		_, first := a.stop()
		require.True(w.T, first)
		_, first = a.stop()
		require.False(w.T, first, "it is stopped already")
		time.Sleep(3 * time.Second)
		require.True(w.T, a.goOn(false))
		require.False(w.T, a.goOn(false), "it runs already")
		time.Sleep(20 * time.Second)
		require.True(w.T, a.leads())
		require.Equal(w.T, token, a.token())
		require.Empty(w.T, s.finish())
	})
}

// The clock of a stopped process stands still, and then jumps to where it would be;
// it runs at its own rate.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slow := newClock(0), newClock(0.9)
		time.Sleep(10 * time.Second)
		require.Equal(t, 10*time.Second, c.Now())
		require.Equal(t, 9*time.Second, slow.Now())
		c.stop()
		time.Sleep(time.Minute)
		c.stop() // again: it stands where it stood
		require.Equal(t, 10*time.Second, c.Now())
		c.jump()
		require.Equal(t, 70*time.Second, c.Now())
	})
}
