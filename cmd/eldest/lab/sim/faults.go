package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// verb is what a step does.
type verb string

const (
	resign    verb = "resign"
	withdraw  verb = "withdraw"
	crash     verb = "crash"
	cut       verb = "cut"
	delay     verb = "delay"
	packets   verb = "packets" // some of them are lost
	fade      verb = "fade"    // replies are delayed, then everything is cut
	flicker   verb = "flicker" // joins and withdraws while its requests are in flight
	lose      verb = "lose"    // a reply
	reset     verb = "reset"
	freeze    verb = "freeze" // the process is stopped, perhaps at a point, and continues
	starve    verb = "starve" // the process waits for a processor at every point
	revoke    verb = "revoke"
	remove    verb = "delete"
	overwrite verb = "overwrite"
	compact   verb = "compact"
	overrun   verb = "overrun" // a compaction while the target is partitioned
	full      verb = "full"    // the store has no space
	restart   verb = "restart"
	outage    verb = "outage"   // the server is down for longer than a TTL
	stall     verb = "stall"    // no participant can reach the server
	transfers verb = "transfer" // the administrator requests it; not drawn here (transfers.go)
)

// fault is a kind of step: how it is drawn and done. Those that find most mistakes are drawn most often.
type fault struct {
	verb   verb
	weight int
	draw   func(rng *rand.Rand, ttl time.Duration, s *step) // what depends on the verb; nil if nothing does
	// do is called with the target; ofServer is for faults of the server, or without a target.
	do       func(r *run, p *participant, s step)
	ofServer func(r *run, s step)
}

func faults() []fault {
	return []fault{
		{verb: cut, weight: 6, draw: drawCut, do: (*run).cut},
		{verb: delay, weight: 4, draw: drawDelay, do: (*run).delay},
		{verb: fade, weight: 4, draw: drawFade, do: (*run).fade},
		{verb: flicker, weight: 3, draw: drawFlicker, do: (*run).flicker},
		{verb: lose, weight: 4, draw: drawLose, do: (*run).lose},
		{verb: crash, weight: 3, draw: drawCrash, do: (*run).crash},
		{verb: resign, weight: 3, draw: to(theLeader), do: func(r *run, p *participant, _ step) { r.count(string(resign), p.resign()) }},
		{verb: withdraw, weight: 2, draw: to(aWaiter), do: func(r *run, p *participant, _ step) { r.count(string(withdraw), p.quitWaiting()) }},
		{verb: freeze, weight: 9, draw: drawFreeze, do: (*run).freeze},
		{verb: starve, weight: 2, draw: drawStarve, do: (*run).starve},
		{verb: packets, weight: 2, draw: drawPackets, do: (*run).packets},
		{verb: revoke, weight: 2, do: (*run).takes},
		{verb: remove, weight: 2, do: (*run).takes},
		{verb: overwrite, weight: 1, do: (*run).takes},
		{verb: reset, weight: 1, do: func(r *run, p *participant, _ step) {
			r.bother(p, 0)
			r.count(string(reset), p.host.Reset() > 0)
		}},
		{verb: compact, weight: 1, ofServer: func(r *run, _ step) { r.count(string(compact), r.compacted()) }},
		{verb: overrun, weight: 2, draw: lasting(1, 10), do: (*run).overrun},
		{verb: full, weight: 1, draw: lasting(1, 15), ofServer: (*run).full},
		{verb: restart, weight: 1, draw: func(rng *rand.Rand, _ time.Duration, s *step) { s.lasts = between(rng, 0, 3*time.Second) }, ofServer: (*run).restart},
		{verb: outage, weight: 1, draw: lasting(11, 25), ofServer: (*run).restart},
		{verb: stall, weight: 1, draw: drawStall, ofServer: (*run).stall},
		{verb: transfers, ofServer: (*run).transfer},
	}
}

// of returns the fault of a verb.
func of(v verb) fault {
	all := faults()
	return all[slices.IndexFunc(all, func(f fault) bool { return f.verb == v })]
}

// drawStep draws a step of any kind.
func drawStep(rng *rand.Rand, ttl, at time.Duration) step {
	all, total := faults(), 0
	for _, f := range all {
		total += f.weight
	}
	n, i := rng.IntN(total), 0
	for n -= all[i].weight; n >= 0; n -= all[i].weight {
		i++
	}
	return all[i].at(rng, ttl, at)
}

// at draws a step of this kind.
func (f fault) at(rng *rand.Rand, ttl, at time.Duration) step {
	s := step{at: at, verb: f.verb, role: role(rng.IntN(3)), pick: rng.IntN(6)}
	if f.draw != nil {
		f.draw(rng, ttl, &s)
	}
	return s
}

func to(who role) func(*rand.Rand, time.Duration, *step) {
	return func(_ *rand.Rand, _ time.Duration, s *step) { s.role = who }
}

// lasting draws how long a step lasts, in tenths of the TTL.
func lasting(least, most int64) func(*rand.Rand, time.Duration, *step) {
	return func(rng *rand.Rand, ttl time.Duration, s *step) {
		s.lasts = between(rng, time.Duration(least*int64(ttl)/10), time.Duration(most*int64(ttl)/10))
	}
}

func drawCut(rng *rand.Rand, ttl time.Duration, s *step) {
	s.way = []rig.Way{rig.Both, rig.Both, rig.Out, rig.In}[rng.IntN(4)]
	s.lasts = between(rng, ttl/10, 5*ttl/2)
	s.reset = rng.IntN(3) == 0
}

func (r *run) cut(p *participant, s step) {
	h := p.host
	r.bother(p, s.lasts)
	h.Cut(s.way)
	r.endsAfter(s.lasts, "cut "+s.way.String(), func() int { return h.Effects().Held }, func() {
		h.Heal()
		if s.reset {
			h.Reset()
		}
	})
}

func anyWay(rng *rand.Rand) rig.Way { return []rig.Way{rig.Both, rig.Out, rig.In}[rng.IntN(3)] }

func drawDelay(rng *rand.Rand, ttl time.Duration, s *step) {
	s.way = anyWay(rng)
	s.lag = []time.Duration{
		between(rng, time.Millisecond, ttl/3), between(rng, 8*ttl/10, 12*ttl/10), between(rng, 13*ttl/10, 2*ttl),
	}[rng.IntN(3)]
	s.lasts = between(rng, ttl/4, 2*ttl)
}

func (r *run) delay(p *participant, s step) {
	size := "above" // the TTL
	if s.lag <= r.ttl/3 {
		size = "below"
	} else if s.lag < 5*r.ttl/4 {
		size = "about"
	}
	r.bother(p, s.lasts+2*s.lag)
	p.host.Delay(s.way, s.lag)
	r.endsAfter(s.lasts, "delay "+size, func() int { return p.host.Effects().Late }, p.host.Heal)
}

func drawPackets(rng *rand.Rand, ttl time.Duration, s *step) {
	s.way = anyWay(rng)
	s.share = 0.05 + 0.5*rng.Float64()
	s.lasts = between(rng, ttl/2, 3*ttl)
}

func (r *run) packets(p *participant, s step) {
	// The last packet may be retransmitted a few times after everything heals.
	r.bother(p, s.lasts+10*time.Second)
	p.host.Lossy(s.way, s.share, r.rng(s))
	r.endsAfter(s.lasts, string(packets), func() int { return p.host.Effects().Resent }, p.host.Heal)
}

func drawFade(rng *rand.Rand, ttl time.Duration, s *step) {
	if rng.IntN(2) == 0 {
		s.role = theLeader
	}
	s.way = rig.In
	s.lag = between(rng, ttl/8, 6*ttl/10)
	s.lasts = between(rng, ttl/2, 3*ttl/2)
}

func (r *run) fade(p *participant, s step) {
	r.bother(p, s.course(r.ttl))
	p.host.Delay(s.way, s.lag)
	r.later(s.lasts, func() {
		p.host.Cut(rig.Both)
		r.endsAfter(s.course(r.ttl)-s.lasts, string(fade), p.sessionsLost, p.host.Heal)
	})
}

func drawFlicker(rng *rand.Rand, ttl time.Duration, s *step) {
	s.way = rig.Out
	s.lag = min(between(rng, ttl/20, ttl/4), 10*time.Second)
	s.lasts = between(rng, time.Second, 3*time.Second)
	s.reset = rng.IntN(3) > 0
}

// flicker makes a candidate join and withdraw while its requests are in flight.
func (r *run) flicker(p *participant, s step) {
	r.bother(p, s.lasts+2*s.lag)
	p.host.Delay(s.way, s.lag)
	for at := time.Duration(0); at < s.lasts; at += 2 * s.lag / 3 {
		r.later(at, func() { r.count(string(flicker), p.quitWaiting()) })
	}
	r.later(s.lasts, func() {
		p.quitWaiting()
		if s.reset {
			broken := p.host.Drop() // its last requests arrive long after it has continued
			r.count("broken in a flicker", broken > 0)
		}
		p.host.Heal()
	})
}

func drawLose(rng *rand.Rand, _ time.Duration, s *step) {
	s.point = replies[rng.IntN(len(replies))]
	s.reset = rng.IntN(2) == 0
}

// lose arms the loss of a reply, and provokes the request if it would not come by itself.
func (r *run) lose(p *participant, s step) {
	harmless := !s.reset && (s.point == "renewal" || s.point == confirmation)
	p.host.Set(&rig.Trap{Match: matcher(s.point), After: true, Lose: true, Strike: func() {
		r.count("reply lost: "+s.point, true)
		if !r.first(p) || !harmless { // one such loss must have no effect
			r.bother(p, r.ttl)
		}
		if s.reset {
			p.host.Reset()
		}
	}})
	r.force(p, s.point)
}

// first reports whether the loss of a reply that just took effect is the participant's first within
// a TTL. Several losses may have been armed while the participant was partitioned, and two in a row
// are more than a session must survive.
func (r *run) first(p *participant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, again := r.lost[p.name]
	r.lost[p.name] = r.world.Now()
	return !again || r.world.Now()-last > r.ttl
}

// force provokes a request that would not come by itself, or not soon.
func (r *run) force(p *participant, what string) {
	switch what {
	case "read", "watch":
		_ = r.goesBefore(p) || p.quitWaiting() || p.resign()
	case "registration":
		_ = p.quitWaiting() || p.resign()
	case "departure":
		_ = p.resign() || p.quitWaiting()
	case "grant":
		r.takeAway(p, revoke, false)
	}
}

// goesBefore makes the leader resign if the participant is next in the queue: at that moment its
// requests matter most. It reports whether it did so.
func (r *run) goesBefore(p *participant) bool {
	q := r.queue()
	if len(q) < 2 || r.owner(q[1].Key) != p {
		return false
	}
	leader := r.owner(q[0].Key)
	return leader != nil && leader.resign()
}
