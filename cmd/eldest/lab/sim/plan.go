package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// plan is a scenario before it is played: everything about it that is random,
// drawn from one seed. Playing it twice does the same things at the same
// instants; in which order goroutines then run within an instant is not in it.
type plan struct {
	style  style
	seed   uint64
	actors int
	ttl    time.Duration
	joins  []time.Duration // when each actor begins
	trips  []time.Duration // how far each is from the server, one way
	temper []Temper
	steps  []step
	// unhurried plans let each fault run its course before everything heals.
	unhurried bool
	tempo     tempo
	tokens    time.Duration     // how long etcd's tokens live; 0: no authentication
	asked     []bool            // who takes part in transfers; none: nobody does
	ranked    bool              // they give way to one another
	beats     []lease.Heartbeat // the heartbeats of each; none: nobody has any
	mute      bool              // etcd's role may not touch heartbeats; where there are tokens
	watched   bool              // somebody looks on; never drawn
	spoil     spoiler           // of all tenures; never drawn
}

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s seed %d: %d participants, TTL %v, joining at %v, at distances %v, tempers %+v, tempo %+v, tokens %v\n", p.style, p.seed, p.actors, p.ttl, p.joins, p.trips, p.temper, p.tempo, p.tokens)
	if p.unhurried {
		fmt.Fprintln(&b, "each fault runs its course")
	}
	if p.asked != nil {
		fmt.Fprintf(&b, "taking part in transfers: %v, giving way: %v\n", p.asked, p.ranked)
	}
	if p.beats != nil {
		fmt.Fprintf(&b, "heartbeats: %+v, refused: %v\n", p.beats, p.mute)
	}
	for _, s := range p.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// over is when the last fault has run its course.
func (p *plan) over() time.Duration {
	last := time.Duration(0)
	for _, s := range p.steps {
		last = max(last, s.at+s.course(p.ttl))
	}
	return last
}

// between draws a duration of whole milliseconds from [least, most].
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}
