package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
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
	packets   verb = "packets" // some of them get lost
	fade      verb = "fade"    // replies get late, then nothing gets through
	flicker   verb = "flicker" // joins and withdraws while its requests are under way
	lose      verb = "lose"
	reset     verb = "reset"
	freeze    verb = "freeze" // the process is stopped, at a point, and goes on
	starve    verb = "starve" // the process waits for a processor at every point
	revoke    verb = "revoke"
	remove    verb = "delete"
	overwrite verb = "overwrite"
	compact   verb = "compact"
	overrun   verb = "overrun" // a compaction while the target is cut off
	full      verb = "full"    // the store has no space
	restart   verb = "restart"
	outage    verb = "outage"   // the server is down for longer than a TTL
	stall     verb = "stall"    // the server can't be reached by anybody
	transfers verb = "transfer" // somebody asks for it; not on the menu (transfers.go)
)

// menu weighs the verbs: the faults that catch elections come most often.
var menu = []dish{
	{cut, 6}, {delay, 4}, {fade, 4}, {flicker, 3}, {lose, 4}, {crash, 3}, {resign, 3}, {withdraw, 2},
	{freeze, 9}, {starve, 2}, {packets, 2}, {revoke, 2}, {remove, 2}, {overwrite, 1}, {reset, 1},
	{compact, 1}, {overrun, 2}, {full, 1}, {restart, 1}, {outage, 1}, {stall, 1},
}

type dish struct {
	verb   verb
	weight int
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
	at       time.Duration
	verb     verb
	role     role
	pick     int           // chooses among those in the role
	way      rig.Way       // cut, delay, packets, fade, flicker
	lasts    time.Duration // of whatever has an end; crash: until a new process comes, 0 never
	lag      time.Duration // delay, fade, flicker; starve: the longest wait at a point
	share    float64       // packets: of those that are lost
	reply    string        // lose: which reply
	point    string        // freeze: at which request; "": wherever it is
	after    bool          // freeze: at its reply
	gone     bool          // freeze: the request at the point goes on only with the process
	unforced bool          // freeze: only if it comes to the point by itself
	asked    bool          // freeze: the first thing it does is to ask whether it leads
	keep     bool          // transfer: the order of the others
	reset    bool          // crash, lose: connections break; cut, flicker: they break when it heals
}

// course is how long the step's effects last under a TTL, if nothing ends them before.
func (s step) course(ttl time.Duration) time.Duration {
	switch s.verb {
	case fade:
		return s.lasts + 5*ttl/2 // in the dark, until the lease has long expired
	case crash:
		return 0 // what lasts is the absence of a process, of which others come
	default:
		return s.lasts
	}
}

func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.3fs %s %s(%d)", s.at.Seconds(), s.verb, s.role, s.pick)
	say := func(name string, value any, is bool) {
		if is {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	say("way", s.way, s.way != 0)
	say("lasts", s.lasts, s.lasts != 0)
	say("lag", s.lag, s.lag != 0)
	say("share", s.share, s.share != 0)
	say("reply", s.reply, s.reply != "")
	say("point", s.point, s.point != "")
	say("after", s.after, s.after)
	say("gone", s.gone, s.gone)
	say("unforced", s.unforced, s.unforced)
	say("asked", s.asked, s.asked)
	say("keep", s.keep, s.keep)
	say("reset", s.reset, s.reset)
	return b.String()
}
