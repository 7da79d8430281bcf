package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/eldest-io/eldest/tests/sim/rig"
)

// plan is a scenario before it is played: everything about it that is random,
// drawn from one seed. Playing it twice does the same things at the same
// instants; in which order goroutines then run within an instant is not in it.
type plan struct {
	seed   uint64
	actors int
	ttl    time.Duration
	joins  []time.Duration // when each actor begins
	trips  []time.Duration // how far each is from the server, one way
	temper []Temper
	steps  []step
}

// verb is what a step does.
type verb string

const (
	resign    verb = "resign"
	withdraw  verb = "withdraw"
	crash     verb = "crash"
	cut       verb = "cut"
	delay     verb = "delay"
	fade      verb = "fade"    // replies get late, then nothing gets through
	flicker   verb = "flicker" // joins and withdraws while its requests are under way
	lose      verb = "lose"
	reset     verb = "reset"
	revoke    verb = "revoke"
	remove    verb = "delete"
	overwrite verb = "overwrite"
	compact   verb = "compact"
	restart   verb = "restart"
)

// role picks the target of a step when it is played.
type role uint8

const (
	anybody role = iota
	theLeader
	aWaiter
)

func (r role) String() string { return [...]string{"anybody", "the leader", "a waiter"}[r] }

// step is one thing that happens. Which fields count depends on the verb.
type step struct {
	at    time.Duration
	verb  verb
	role  role
	pick  int           // chooses among those in the role
	way   rig.Way       // cut, delay, fade, flicker
	lasts time.Duration // cut, delay, fade, flicker, restart; crash: until a new process comes, 0 never
	lag   time.Duration // delay, fade, flicker
	reply string        // lose: which reply
	reset bool          // crash, lose: connections break; cut, flicker: they break when it heals
}

func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.3fs %s %s(%d)", s.at.Seconds(), s.verb, s.role, s.pick)
	if s.way != 0 {
		fmt.Fprintf(&b, " way=%s", s.way)
	}
	if s.lasts != 0 {
		fmt.Fprintf(&b, " lasts=%v", s.lasts)
	}
	if s.lag != 0 {
		fmt.Fprintf(&b, " lag=%v", s.lag)
	}
	if s.reply != "" {
		fmt.Fprintf(&b, " reply=%s", s.reply)
	}
	if s.reset {
		b.WriteString(" reset")
	}
	return b.String()
}

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d participants, TTL %v, joining at %v, at distances %v, tempers %+v\n", p.seed, p.actors, p.ttl, p.joins, p.trips, p.temper)
	for _, s := range p.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// menu weighs the verbs: the faults that catch elections come most often.
var menu = []struct {
	verb   verb
	weight int
}{
	{cut, 6}, {delay, 4}, {fade, 4}, {flicker, 3}, {lose, 4}, {crash, 3}, {resign, 3}, {withdraw, 2},
	{revoke, 2}, {remove, 2}, {overwrite, 1}, {reset, 1}, {compact, 2}, {restart, 1},
}

// calm is the time before the first fault: the first leader's election.
const calm = 3 * time.Second

// draw makes the plan of a seed.
func draw(seed uint64) *plan {
	rng := rand.New(rand.NewPCG(seed, 0x656c64657374))
	p := &plan{seed: seed, actors: 2 + rng.IntN(5), ttl: time.Duration(2+rng.IntN(9)) * time.Second}
	for range p.actors {
		p.joins = append(p.joins, between(rng, 0, 2*time.Second))
		p.temper = append(p.temper, drawTemper(rng))
		p.trips = append(p.trips, time.Duration(rng.IntN(2)*rng.IntN(3000))*time.Microsecond)
	}
	at := calm
	for range 6 + rng.IntN(10) {
		at += between(rng, p.ttl/20, p.ttl)
		p.steps = append(p.steps, drawStep(rng, p.ttl, at))
	}
	return p
}

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
		// Below a third of the TTL, about the TTL, above it; split over the ways.
		s.way = []rig.Way{rig.Both, rig.Out, rig.In}[rng.IntN(3)]
		s.lag = []time.Duration{
			between(rng, time.Millisecond, ttl/3), between(rng, 8*ttl/10, 12*ttl/10), between(rng, ttl, 2*ttl),
		}[rng.IntN(3)]
		s.lasts = between(rng, ttl/4, 2*ttl)
	case fade:
		s.way = rig.In
		s.lag = between(rng, ttl/8, 6*ttl/10)
		s.lasts = between(rng, ttl/2, 3*ttl/2)
	case flicker:
		s.way = rig.Out
		s.lag = between(rng, ttl/20, ttl/4)
		s.lasts = between(rng, time.Second, 3*time.Second)
		s.reset = rng.IntN(3) > 0
	case lose:
		s.reply = replies[rng.IntN(len(replies))]
		s.reset = rng.IntN(2) == 0
	case restart:
		s.lasts = between(rng, 0, 3*time.Second)
	}
	return s
}

func drawVerb(rng *rand.Rand) verb {
	total := 0
	for _, m := range menu {
		total += m.weight
	}
	n := rng.IntN(total)
	for _, m := range menu {
		if n -= m.weight; n < 0 {
			return m.verb
		}
	}
	panic("unreachable: the weights sum to total")
}

// between draws a duration of whole milliseconds from [least, most].
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}
