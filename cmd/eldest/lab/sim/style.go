package sim

import (
	"math/rand/v2"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// style is what a scenario is good for.
type style string

const (
	// ordinary scenarios are as random as can be: half a minute, five to ten faults; in one
	// of ten a minute and up to a dozen, each of which runs its course.
	ordinary style = "ordinary"
	// dense ones are about as many tenures as can be: leaders that resign at once and
	// come back at once, in a crowd, under the same faults.
	dense style = "dense"
	// quiet ones are about as much time as can be: days under TTLs of up to hours.
	quiet style = "quiet"
)

// calm is the time before the first fault: the first leader's election.
const calm = 3 * time.Second

// draw makes the plan of a seed.
func (st style) draw(seed uint64) *plan {
	p := st.drawSteady(seed)
	p.drawBeats()
	return p
}

// drawFor makes the plan of a seed for an election, which may be one without heartbeats.
func (st style) drawFor(impl contender.Contender, seed uint64) *plan {
	if _, ours := impl.(contender.Ours); !ours {
		return st.drawSteady(seed)
	}
	return st.draw(seed)
}

// drawSteady makes the plan of a seed without heartbeats.
func (st style) drawSteady(seed uint64) *plan {
	rng := rand.New(rand.NewPCG(seed, 0x656c64657374))
	p := &plan{style: st, seed: seed}
	switch st {
	case dense:
		p.drawDense(rng)
	case quiet:
		p.drawQuiet(rng)
	default:
		p.drawOrdinary(rng)
	}
	p.drawTransfers()
	return p
}

// draw makes the ordinary plan of a seed.
func draw(seed uint64) *plan { return ordinary.draw(seed) }

func (p *plan) drawOrdinary(rng *rand.Rand) {
	p.actors, p.ttl, p.tempo = 2+rng.IntN(4), time.Duration(2+rng.IntN(9))*time.Second, usual
	if rng.IntN(2) == 0 {
		p.tempo.linger = p.ttl / 2
	}
	if rng.IntN(100) == 0 { // seldom: a token costs as much as twenty requests
		p.tokens = between(rng, 2*time.Second, p.ttl).Truncate(time.Second)
	}
	p.gather(rng, 2*time.Second, 3*time.Millisecond)
	// Faults that come one upon the other find other mistakes than those that are left to
	// themselves: a lease runs out, the next one is not yet disturbed.
	faults, apart := 5+rng.IntN(6), p.ttl/2
	if p.unhurried = rng.IntN(10) == 0; p.unhurried {
		faults, apart = 6+rng.IntN(7), p.ttl
	}
	at := calm
	for range faults {
		at += between(rng, p.ttl/20, apart)
		p.steps = append(p.steps, drawStep(rng, p.ttl, at))
	}
}

func (p *plan) drawDense(rng *rand.Rand) {
	p.actors, p.ttl, p.tempo = 4+rng.IntN(5), time.Duration(2+rng.IntN(2))*time.Second, usual
	p.tempo.linger, p.tempo.rest = 10*time.Millisecond, 10*time.Millisecond
	p.gather(rng, 100*time.Millisecond, time.Millisecond)
	at := calm
	for range 6 + rng.IntN(6) {
		at += between(rng, p.ttl/20, p.ttl)
		p.steps = append(p.steps, drawStep(rng, p.ttl, at))
	}
}

func (p *plan) drawQuiet(rng *rand.Rand) {
	p.actors, p.ttl, p.tempo = 2+rng.IntN(2), between(rng, 10*time.Minute, 8*time.Hour).Truncate(time.Second), usual
	p.tempo.pace, p.tempo.reads, p.tempo.recheck, p.tempo.tick = p.ttl/8, p.ttl/4, 3*time.Minute, time.Second
	p.gather(rng, time.Minute, 3*time.Millisecond)
	at := p.ttl
	for range 8 + rng.IntN(8) {
		at += between(rng, p.ttl/4, 8*p.ttl)
		p.steps = append(p.steps, drawStep(rng, p.ttl, at))
	}
}

// gather draws who takes part: when each joins, and how far each is at most.
func (p *plan) gather(rng *rand.Rand, joins, trips time.Duration) {
	for range p.actors {
		p.joins = append(p.joins, between(rng, 0, joins))
		p.temper = append(p.temper, drawTemper(rng))
		p.trips = append(p.trips, time.Duration(rng.IntN(2)*rng.IntN(int(trips/time.Microsecond)))*time.Microsecond)
	}
}

// options are what the plan asks of its world.
func (p *plan) options() rig.Options {
	o := rig.Options{
		Tick: p.tempo.tick, Tokens: p.tokens,
		Ranges: [][2]string{{prefix, electionName + "0"}, {dataKey, dataKey + "\x00"}, {mailboxes, mailboxesEnd}},
	}
	if !p.mute {
		o.Ranges = append(o.Ranges, [2]string{beats, beatsEnd})
	}
	return o
}
