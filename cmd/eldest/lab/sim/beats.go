package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// A heartbeat and an eviction, as replies that are lost and points to be stopped at.
const (
	beat     = "heartbeat"
	eviction = "eviction"
)

var beats, beatsEnd = keys.Beats()

// drawBeats gives heartbeats to all or some participants of every other scenario, from a source
// of its own: all else in a plan is what it is without them. Their timeouts differ, and their margins
// cover the clocks of that plan: half of them by no more than a millisecond.
func (p *plan) drawBeats() {
	rng := rand.New(rand.NewPCG(p.seed, 0x6265617473))
	if p.style == quiet || rng.IntN(2) > 0 { // days of heartbeats are too much
		return
	}
	some := rng.IntN(3) > 0
	for range p.actors {
		var h lease.Heartbeat
		if !some || rng.IntN(4) > 0 {
			h.Timeout = between(rng, lease.MinHeartbeat, min(3*time.Second, p.ttl-time.Second))
			h.Margin = p.drift(h.Timeout) + time.Millisecond
			if rng.IntN(2) == 0 {
				h.Margin = max(h.Margin, h.Timeout/10, lease.MinHeartbeatMargin)
			}
		}
		p.beats = append(p.beats, h)
	}
	p.mute = p.tokens > 0 && rng.IntN(2) == 0
	last := p.steps[len(p.steps)-1].at
	if p.asked == nil && p.style == ordinary && rng.IntN(2) == 0 {
		p.steps = nil // of that kind alone: other faults seldom leave an eviction to itself
	}
	for range 3 + rng.IntN(4) {
		d := max(lease.MinHeartbeat, p.beats[rng.IntN(p.actors)].Timeout)
		p.drawSilence(rng, d, between(rng, calm/2, last))
	}
	slices.SortStableFunc(p.steps, func(a, b step) int { return int(a.at - b.at) })
}

// drift is by how much the clocks of a plan can disagree about a time.
func (p *plan) drift(d time.Duration) time.Duration {
	fastest, slowest := 1.0, 1.0
	for _, t := range p.temper {
		if t.Rate != 0 {
			fastest, slowest = max(fastest, t.Rate), min(slowest, t.Rate)
		}
	}
	return time.Duration(float64(d) * (1 - slowest/fastest))
}

// drawSilence draws faults that matter to heartbeats with the timeout d.
func (p *plan) drawSilence(rng *rand.Rand, d, at time.Duration) {
	add := func(v verb, r role, lasts time.Duration) *step {
		p.steps = append(p.steps, step{at: at, verb: v, role: r, lasts: lasts})
		return &p.steps[len(p.steps)-1]
	}
	long := between(rng, 11*d/10, 3*d)
	cutOff := func(r role) { add(cut, r, long).way = []rig.Way{rig.Both, rig.Out, rig.In}[rng.IntN(3)] }
	trap := func(point string, r role) *step {
		s := add(freeze, r, long)
		s.point, s.after, s.gone, s.asked = point, rng.IntN(2) == 0, rng.IntN(3) > 0, rng.IntN(2) == 0
		return s
	}
	switch rng.IntN(15) {
	case 0:
		add(stall, anybody, long)
	case 1:
		add(freeze, theLeader, 3*d).asked = rng.IntN(2) == 0
	case 2:
		add(freeze, aWaiter, 3*d).asked = rng.IntN(2) == 0
	case 3:
		add(lose, []role{theLeader, aWaiter}[rng.IntN(2)], 0).reply = beat
	case 4:
		add(lose, aWaiter, 0).reply = eviction
		cutOff(theLeader)
	case 5:
		trap(beat, []role{theLeader, aWaiter}[rng.IntN(2)])
	case 6:
		trap(eviction, aWaiter)
		cutOff(theLeader)
	case 7:
		cutOff(aWaiter)
	case 8:
		add(overrun, aWaiter, long)
		at += between(rng, 0, long)
		cutOff(theLeader)
	case 9, 10: // acknowledgements get late, then nothing gets through
		s := add(fade, theLeader, between(rng, d, 3*d))
		s.way, s.lag = rig.In, between(rng, d/10, 8*d/10)
	case 11: // the proof of a win
		trap("read", aWaiter)
	case 12, 13: // the proof of one that was suspended
		add(stall, anybody, between(rng, 11*d/10, 3*d/2))
		at += time.Millisecond
		trap("read", theLeader).unforced = true
	default: // its key is taken away while it is silent
		cutOff(theLeader)
		at += between(rng, d/10, d)
		add([]verb{remove, revoke, overwrite}[rng.IntN(3)], theLeader, 0)
	}
}
