package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// A heartbeat and an eviction, as replies to lose and as points to stop at.
const (
	beat     = "heartbeat"
	eviction = "eviction"
)

var beats, beatsEnd = keys.Heartbeats()

// drawBeats gives heartbeats to all or some participants of every other scenario, from its own
// random source: everything else in a plan is the same without them. Their timeouts differ, and
// their margins cover the clocks of that plan: half of them by no more than a millisecond.
func (p *plan) drawBeats() {
	rng := rand.New(rand.NewPCG(p.seed, 0x6265617473))
	if p.style == quiet || rng.IntN(2) > 0 { // heartbeats for days are too many
		return
	}
	some := rng.IntN(3) > 0
	for i := range p.members {
		if some && rng.IntN(4) == 0 {
			continue
		}
		h := &p.members[i].beats
		h.Timeout = between(rng, lease.MinHeartbeat, min(3*time.Second, p.ttl-time.Second))
		h.Margin = p.drift(h.Timeout) + time.Millisecond
		if rng.IntN(2) == 0 {
			h.Margin = max(h.Margin, h.Timeout/10, lease.MinHeartbeatMargin)
		}
	}
	p.mute = p.tokens > 0 && rng.IntN(2) == 0
	last := p.last()
	transferred := slices.ContainsFunc(p.steps, func(s step) bool { return s.verb == transfers })
	if !transferred && p.style == ordinary && rng.IntN(2) == 0 {
		p.steps = nil // only steps of that kind: other faults seldom leave an eviction undisturbed
	}
	for range 3 + rng.IntN(4) {
		d := max(lease.MinHeartbeat, p.members[rng.IntN(len(p.members))].beats.Timeout)
		p.drawSilence(rng, d, between(rng, calm/2, last))
	}
}

// drift returns by how much the clocks of a plan can disagree about a duration.
func (p *plan) drift(d time.Duration) time.Duration {
	fastest, slowest := 1.0, 1.0
	for _, m := range p.members {
		if m.temper.rate != 0 {
			fastest, slowest = max(fastest, m.temper.rate), min(slowest, m.temper.rate)
		}
	}
	return time.Duration(float64(d) * (1 - slowest/fastest))
}

// drawSilence draws faults that affect heartbeats with the timeout d.
func (p *plan) drawSilence(rng *rand.Rand, d, at time.Duration) {
	long := between(rng, 11*d/10, 3*d)
	var all []step
	add := func(s step) {
		s.at = at
		all = append(all, s)
	}
	cutOff := func(r role) { add(step{verb: cut, role: r, lasts: long, way: anyWay(rng)}) }
	trap := func(point string, r role, unforced bool) {
		add(step{
			verb: freeze, role: r, lasts: long, point: point, unforced: unforced,
			after: rng.IntN(2) == 0, gone: rng.IntN(3) > 0, asked: rng.IntN(2) == 0,
		})
	}
	either := func() role { return []role{theLeader, aWaiter}[rng.IntN(2)] }
	switch rng.IntN(15) {
	case 0:
		add(step{verb: stall, lasts: long})
	case 1:
		add(step{verb: freeze, role: theLeader, lasts: 3 * d, asked: rng.IntN(2) == 0})
	case 2:
		add(step{verb: freeze, role: aWaiter, lasts: 3 * d, asked: rng.IntN(2) == 0})
	case 3:
		add(step{verb: lose, role: either(), point: beat})
	case 4:
		add(step{verb: lose, role: aWaiter, point: eviction})
		cutOff(theLeader)
	case 5:
		trap(beat, either(), false)
	case 6:
		trap(eviction, aWaiter, false)
		cutOff(theLeader)
	case 7:
		cutOff(aWaiter)
	case 8:
		add(step{verb: overrun, role: aWaiter, lasts: long})
		at += between(rng, 0, long)
		cutOff(theLeader)
	case 9, 10: // acknowledgements are delayed, then everything is cut
		lasts := between(rng, d, 3*d)
		add(step{verb: fade, role: theLeader, lasts: lasts, way: rig.In, lag: between(rng, d/10, 8*d/10)})
	case 11: // the proof of a win
		trap("read", aWaiter, false)
	case 12, 13: // the proof of a leader that was suspended
		add(step{verb: stall, lasts: between(rng, 11*d/10, 3*d/2)})
		at += time.Millisecond
		trap("read", theLeader, true)
	default: // its key is removed or overwritten while it sends no heartbeats
		cutOff(theLeader)
		at += between(rng, d/10, d)
		add(step{verb: []verb{remove, revoke, overwrite}[rng.IntN(3)], role: theLeader})
	}
	p.add(all...)
}
