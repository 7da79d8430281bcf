package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/lease"
)

// style is the purpose of a scenario.
type style string

const (
	// ordinary scenarios are as random as possible: half a minute, five to ten faults; in one of
	// ten a minute and up to a dozen, each of which runs its course.
	ordinary style = "ordinary"
	// dense ones have as many tenures as possible: many leaders that resign at once and come back
	// at once, under the same faults.
	dense style = "dense"
	// quiet ones cover as much time as possible: days under TTLs of up to hours.
	quiet style = "quiet"
)

// plan is a scenario before it runs: everything about it that is random, drawn from one seed.
// Running it twice does the same things at the same instants; the order of goroutines within an
// instant may differ.
type plan struct {
	style   style
	seed    uint64
	impl    contender.Contender // the election under test
	ttl     time.Duration
	members []member
	steps   []step
	// unhurried plans let each fault run its course before everything heals.
	unhurried bool
	tempo     tempo
	tokens    time.Duration // how long etcd's tokens live; 0: no authentication
	ranked    bool          // members yield to one another by priority
	mute      bool          // with tokens: the participants' role cannot access heartbeats
	watched   bool          // there is an observer
	spoil     spoiler       // of all tenures; never drawn
}

// member is one participant of a plan.
type member struct {
	joins     time.Duration // when it begins
	trip      time.Duration // its distance from the server, one way
	temper    temper
	transfers bool            // it takes part in transfers
	beats     lease.Heartbeat // zero: none
}

// temper has the settings of a participant's session and clock. The zero value leaves everything at
// its default.
type temper struct {
	rate     float64       // the rate of the participant's clock; 0 means 1
	margin   time.Duration // is subtracted from the TTL; it must cover rate. 0: the default
	patience float64       // the time-out of a renewal as a share of the TTL; 0: the default
}

// tempo has the durations of everything that is not a fault.
type tempo struct {
	pace    time.Duration // between two guarded writes of a leader
	rest    time.Duration // the longest pause between two campaigns
	reads   time.Duration // between two reads of a bystander; few are needed, because the store is read directly
	linger  time.Duration // the longest time that leaders lead before they resign; 0: until a step makes them
	recheck time.Duration // between liveness checks of watches; 0: the default
	tick    time.Duration // of etcd; 0: its default
	settle  time.Duration // the time in which everything recovers by itself, in addition to two TTLs
}

// usual is the tempo of most scenarios.
var usual = tempo{pace: 500 * time.Millisecond, rest: time.Second, reads: 8 * time.Second, settle: 12 * time.Second}

// role picks the target of a step when it runs.
type role uint8

const (
	anyParticipant role = iota
	theLeader
	aWaiter
)

func (r role) String() string { return [...]string{"any participant", "the leader", "a waiter"}[r] }

// step is one event of a plan. The verb determines which fields are used.
type step struct {
	at       time.Duration
	verb     verb
	role     role
	pick     int           // chooses among those in the role
	way      rig.Way       // cut, delay, packets, fade, flicker
	lasts    time.Duration // of a fault that ends; crash: until a new process starts, 0 never
	lag      time.Duration // delay, fade, flicker; starve: the longest wait at a point
	share    float64       // packets: the share that is lost
	point    string        // freeze: the request at which it stops, "" for anywhere; lose: the reply
	after    bool          // freeze: at its reply
	gone     bool          // freeze: the request at the point continues only with the process
	unforced bool          // freeze: the request is not provoked
	asked    bool          // freeze: its first action afterwards is to check whether it leads
	keep     bool          // transfer: keep the order of the others
	// crash: the process leaves, and is not killed; the node's next process removes what it left
	politely, takesOver bool
	reset               bool // crash, lose: connections break; cut, flicker: they break when it heals
}

// course returns how long the step's effects last under a TTL, if nothing ends them earlier.
func (s step) course(ttl time.Duration) time.Duration {
	switch s.verb {
	case fade:
		return s.lasts + 5*ttl/2 // partitioned until long after the lease has expired
	case crash:
		return 0 // the only lasting effect is that a process is missing, and others come
	default:
		return s.lasts
	}
}

func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.3fs %s %s(%d)", s.at.Seconds(), s.verb, s.role, s.pick)
	for _, field := range []struct {
		name  string
		value any
	}{
		{"way", s.way}, {"lasts", s.lasts}, {"lag", s.lag}, {"share", s.share}, {"point", s.point}, {"after", s.after},
		{"gone", s.gone}, {"unforced", s.unforced}, {"asked", s.asked}, {"keep", s.keep}, {"reset", s.reset},
		{"politely", s.politely}, {"takesOver", s.takesOver},
	} {
		if !reflect.ValueOf(field.value).IsZero() {
			fmt.Fprintf(&b, " %s=%v", field.name, field.value)
		}
	}
	return b.String()
}

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s seed %d: TTL %v, tempo %+v, tokens %v; each fault runs its course: %v; they yield: %v; heartbeats are refused: %v\n",
		p.style, p.seed, p.ttl, p.tempo, p.tokens, p.unhurried, p.ranked, p.mute)
	for i, m := range p.members {
		fmt.Fprintf(&b, "p%d joins at %v, is %v away, %+v, takes part in transfers: %v, heartbeats %+v\n", i+1, m.joins, m.trip, m.temper, m.transfers, m.beats)
	}
	for _, s := range p.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// watched is how many scenarios there are to one that is observed.
const watched = 3

// calm is the time before the first fault, in which the first leader is elected.
const calm = 3 * time.Second

// draw makes the plan of a seed for an election, which may be one without heartbeats.
func (st style) draw(impl contender.Contender, seed uint64) *plan {
	rng := rand.New(rand.NewPCG(seed, 0x656c64657374))
	p := &plan{style: st, seed: seed, impl: impl, tempo: usual}
	switch st {
	case dense:
		n := 4 + rng.IntN(5)
		p.ttl = time.Duration(2+rng.IntN(2)) * time.Second
		p.tempo.linger, p.tempo.rest = 10*time.Millisecond, 10*time.Millisecond
		p.gather(rng, n, 100*time.Millisecond, time.Millisecond)
		p.drawSteps(rng, 6+rng.IntN(6), calm, p.ttl/20, p.ttl)
	case quiet:
		n := 2 + rng.IntN(2)
		p.ttl = between(rng, 10*time.Minute, 8*time.Hour).Truncate(time.Second)
		p.tempo.pace, p.tempo.reads, p.tempo.recheck, p.tempo.tick = p.ttl/8, p.ttl/4, 3*time.Minute, time.Second
		p.gather(rng, n, time.Minute, 3*time.Millisecond)
		p.drawSteps(rng, 8+rng.IntN(8), p.ttl, p.ttl/4, 8*p.ttl)
	default:
		n := 2 + rng.IntN(4)
		p.ttl = time.Duration(2+rng.IntN(9)) * time.Second
		if rng.IntN(2) == 0 {
			p.tempo.linger = p.ttl / 2
		}
		if rng.IntN(100) == 0 { // seldom: a token costs as much as twenty requests
			p.tokens = between(rng, 2*time.Second, p.ttl).Truncate(time.Second)
		}
		p.gather(rng, n, 2*time.Second, 3*time.Millisecond)
		// Faults that follow each other closely find other mistakes than isolated ones, after which
		// a lease expires and the next one is not yet disturbed.
		faults, apart := 5+rng.IntN(6), p.ttl/2
		if p.unhurried = rng.IntN(10) == 0; p.unhurried {
			faults, apart = 6+rng.IntN(7), p.ttl
		}
		p.drawSteps(rng, faults, calm, p.ttl/20, apart)
		p.watched = seed%watched == 0
	}
	p.drawTransfers()
	if _, ok := impl.(nodes); ok {
		p.drawNodes()
	}
	if _, ours := impl.(contender.Ours); ours {
		p.drawBeats()
	}
	return p
}

// gather draws the members: joins is the latest time of a join, trips the greatest distance.
func (p *plan) gather(rng *rand.Rand, n int, joins, trips time.Duration) {
	for range n {
		m := member{joins: between(rng, 0, joins), temper: drawTemper(rng)}
		m.trip = time.Duration(rng.IntN(2)*rng.IntN(int(trips/time.Microsecond))) * time.Microsecond
		p.members = append(p.members, m)
	}
}

// drawTemper draws a temper. The default margin hides two faults: an error of up to a tenth of the
// TTL, and, with its short timeout of renewals, all of a slow reply. So half of the participants
// have next to no margin, with a perfect clock; the others have a clock as wrong as the default
// margin still covers.
func drawTemper(rng *rand.Rand) temper {
	if rng.IntN(2) == 0 {
		return temper{margin: time.Millisecond, patience: 0.1 + 0.6*rng.Float64()}
	}
	return temper{rate: 0.92 + 0.16*rng.Float64()}
}

func (p *plan) drawSteps(rng *rand.Rand, n int, at, least, most time.Duration) {
	for range n {
		at += between(rng, least, most)
		p.steps = append(p.steps, drawStep(rng, p.ttl, at))
	}
}

// last is when the last step begins.
func (p *plan) last() time.Duration { return p.steps[len(p.steps)-1].at }

// add adds steps in the order of time.
func (p *plan) add(more ...step) {
	p.steps = append(p.steps, more...)
	slices.SortStableFunc(p.steps, func(a, b step) int { return int(a.at - b.at) })
}

// over is when the last fault ends.
func (p *plan) over() time.Duration {
	last := time.Duration(0)
	for _, s := range p.steps {
		last = max(last, s.at+s.course(p.ttl))
	}
	return last
}

// options returns the options of the plan's world.
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

// between draws a duration of whole milliseconds from [least, most].
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}
