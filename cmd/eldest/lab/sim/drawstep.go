package sim

import (
	"math/rand/v2"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// lags are how late a delay makes things: below a third of the TTL, about the TTL,
// above it.
var lags = []string{"below", "about", "above"}

// sizeOf says which of lags a delay is.
func sizeOf(lag, ttl time.Duration) string {
	switch {
	case lag <= ttl/3:
		return lags[0]
	case lag < 5*ttl/4:
		return lags[1]
	default:
		return lags[2]
	}
}

// longestWait bounds how long a starving goroutine stands still, whatever the TTL:
// the world must have ended a minute after its scenario.
const longestWait = 20 * time.Second

func drawStep(rng *rand.Rand, ttl, at time.Duration) step {
	s := step{at: at, verb: drawVerb(rng), role: role(rng.IntN(3)), pick: rng.IntN(6)}
	switch s.verb {
	case resign:
		s.role = theLeader
	case withdraw:
		s.role = aWaiter
	case crash:
		s.reset = rng.IntN(2) == 0
		if rng.IntN(4) > 0 {
			s.lasts = between(rng, 0, ttl)
		}
	case cut:
		s.way = []rig.Way{rig.Both, rig.Both, rig.Out, rig.In}[rng.IntN(4)]
		s.lasts = between(rng, ttl/10, 5*ttl/2)
		s.reset = rng.IntN(3) == 0
	case delay:
		s.way = []rig.Way{rig.Both, rig.Out, rig.In}[rng.IntN(3)]
		s.lag = []time.Duration{
			between(rng, time.Millisecond, ttl/3), between(rng, 8*ttl/10, 12*ttl/10), between(rng, 13*ttl/10, 2*ttl),
		}[rng.IntN(3)]
		s.lasts = between(rng, ttl/4, 2*ttl)
	case packets:
		s.way = []rig.Way{rig.Both, rig.Out, rig.In}[rng.IntN(3)]
		s.share = 0.05 + 0.5*rng.Float64()
		s.lasts = between(rng, ttl/2, 3*ttl)
	case fade:
		if rng.IntN(2) == 0 {
			s.role = theLeader
		}
		s.way = rig.In
		s.lag = between(rng, ttl/8, 6*ttl/10)
		s.lasts = between(rng, ttl/2, 3*ttl/2)
	case flicker:
		s.way = rig.Out
		s.lag = min(between(rng, ttl/20, ttl/4), 10*time.Second)
		s.lasts = between(rng, time.Second, 3*time.Second)
		s.reset = rng.IntN(3) > 0
	case lose:
		s.reply = replies[rng.IntN(len(replies))]
		s.reset = rng.IntN(2) == 0
	case freeze:
		drawFreeze(rng, ttl, &s)
	case starve:
		s.lag = min(between(rng, ttl/10, 3*ttl/2), longestWait)
		s.lasts = between(rng, ttl/2, 2*ttl)
	case overrun:
		s.lasts = between(rng, ttl/10, ttl)
	case full:
		s.lasts = between(rng, ttl/10, 3*ttl/2)
	case restart:
		s.lasts = between(rng, 0, 3*time.Second)
	case outage:
		s.lasts = between(rng, 11*ttl/10, 5*ttl/2)
	case stall:
		s.lasts = between(rng, ttl/10, 2*ttl)
		s.reset = rng.IntN(3) == 0
	}
	return s
}

// drawFreeze stops a process, for longer than its lease can last in two of three
// cases, and in most at a point, to which not every process comes.
func drawFreeze(rng *rand.Rand, ttl time.Duration, s *step) {
	if rng.IntN(6) > 0 {
		s.point = points[rng.IntN(len(points))]
		s.after = rng.IntN(2) == 0
		s.gone = rng.IntN(3) > 0
	}
	switch {
	case s.point == "read" || s.point == "watch":
		s.role, s.pick = aWaiter, 0 // the next in the queue
	case rng.IntN(2) == 0:
		s.role = theLeader
	}
	s.asked = rng.IntN(2) == 0
	s.lasts = between(rng, ttl/5, ttl)
	if rng.IntN(3) > 0 {
		s.lasts = between(rng, 11*ttl/10, 3*ttl)
	}
}
