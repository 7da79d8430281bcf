package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Role says on whom a fault is struck.
type Role string

// The roles. Of members, Leader is the one that leads etcd.
const (
	Leader Role = "leader"
	Waiter Role = "waiter"
	Anyone Role = "anyone"
)

// Way is a direction of traffic, as a member sees it.
type Way string

// The ways.
const (
	Both Way = "both ways"
	In   Way = "inbound"
	Out  Way = "outbound"
)

// Reply is the kind of request whose reply is lost.
type Reply string

// The replies.
const (
	AnyReply     Reply = "any"
	WriteReply   Reply = "write"
	Registration Reply = "registration"
)

// Strike is one fault with all that was drawn for it. Fields that mean nothing to the
// fault are zero.
type Strike struct {
	Fault Fault `json:"fault"`
	// On is a participant's role, or a member's for faults of members.
	On Role `json:"on,omitempty"`
	// Pick chooses among those who have the role.
	Pick int `json:"-"`
	Way  Way `json:"way,omitempty"`
	// All says that a black hole is in front of all members.
	All bool `json:"all,omitempty"`
	// Inbound and Outbound are delays.
	Inbound  time.Duration `json:"inbound,omitempty"`
	Outbound time.Duration `json:"outbound,omitempty"`
	Reply    Reply         `json:"reply,omitempty"`
	// Rate is how fast a clock runs.
	Rate float64 `json:"rate,omitempty"`
	// Alone is how long it is on before the next strike.
	Alone time.Duration `json:"alone,omitempty"`
}

// String is the strike in a line of a log.
func (s Strike) String() string {
	text := string(s.Fault)
	var how []string
	if s.On != "" {
		how = append(how, string(s.On))
	}
	if s.Way != "" {
		how = append(how, string(s.Way))
	}
	if s.All {
		how = append(how, "all members")
	}
	if s.Inbound+s.Outbound > 0 {
		how = append(how, fmt.Sprintf("%v in, %v out", s.Inbound, s.Outbound))
	}
	if s.Reply != "" {
		how = append(how, string(s.Reply))
	}
	if s.Alone != 0 {
		how = append(how, fmt.Sprintf("alone for %v", s.Alone))
	}
	if s.Rate != 0 {
		how = append(how, fmt.Sprintf("x%.2f", s.Rate))
	}
	if len(how) == 0 {
		return text
	}
	return text + "(" + strings.Join(how, ", ") + ")"
}

// Round is what happens in one round.
type Round struct {
	// Number counts from 1 in its series.
	Number  int      `json:"round"`
	Strikes []Strike `json:"strikes"`
	// Hold is how long the last strike is on before all are healed.
	Hold time.Duration `json:"hold"`
}

// String is the round in a line of a log.
func (r Round) String() string {
	var strikes []string
	for _, s := range r.Strikes {
		strikes = append(strikes, s.String())
	}
	return fmt.Sprintf("%s for %v", strings.Join(strikes, " + "), r.Hold)
}

// Draw makes a round from the faults that may occur, of which there is at least one. It
// depends on nothing but its arguments.
func Draw(seed uint64, number int, faults []Fault, ttl time.Duration) Round {
	d := drawer{rand.New(rand.NewPCG(seed, uint64(number))), ttl}
	r := Round{Number: number}
	first := d.fault(faults)
	chosen := []Fault{first}
	if others := companions(first, faults); len(others) > 0 && (first == Skew || d.IntN(2) == 0) {
		chosen = append(chosen, d.fault(others))
	}
	slices.SortFunc(chosen, before)
	lasts := false
	for _, f := range chosen {
		r.Strikes = append(r.Strikes, d.strike(f))
		lasts = lasts || info(f).lasts
	}
	r.Hold = d.hold(lasts, slices.Contains(chosen, Stop))
	if len(chosen) == 2 && info(chosen[0]).group == info(chosen[1]).group {
		d.slowThenDead(&r)
	}
	return r
}

// before orders the faults of a round by their groups; of a network, delays come first.
func before(a, b Fault) int {
	switch {
	case info(a).group != info(b).group:
		return int(info(a).group) - int(info(b).group)
	case a == Delay:
		return -1
	case b == Delay:
		return 1
	}
	return 0
}

// slowThenDead turns a delay and another fault of the network into one story: the leader's
// replies are late, but not too late, for as long as some renewals take; then it hears
// nothing more, for longer than its lease lives. Whoever counts a deadline from the receipt
// of a reply is wrong by just that delay. (A renewal takes two replies, one after another, and
// begins a quarter of the TTL after the last one: a third of the TTL is what it bears.)
func (d drawer) slowThenDead(r *Round) {
	slow, dead := &r.Strikes[0], &r.Strikes[1]
	slow.Inbound, slow.Outbound = 0, d.between(d.ttl*2/10, d.ttl*33/100)
	slow.Alone = d.between(d.ttl, d.ttl*3/2)
	slow.On, dead.On = Leader, Leader
	dead.Pick, dead.All = slow.Pick, dead.Fault == BlackHole
	r.Hold = d.between(d.ttl*17/10, d.ttl*22/10)
}

// companions lists the faults with which one may share a round: those of other groups, and
// a delay with what else is done to a network for a while. A clock that is off shows where
// renewals fail, so it is met together with what makes them fail.
func companions(of Fault, faults []Fault) []Fault {
	var others []Fault
	for _, f := range faults {
		switch {
		case f == of:
		case info(f).group == networks && info(of).group == networks:
			if (f == Delay || of == Delay) && info(f).lasts && info(of).lasts {
				others = append(others, f)
			}
		case info(f).group == info(of).group:
		case of == Skew && !info(f).lasts:
		default:
			others = append(others, f)
		}
	}
	return others
}

type drawer struct {
	*rand.Rand
	ttl time.Duration
}

// fault draws one. What is done to participants ends more tenures than what is done to
// members, of which there are more kinds, so it is drawn more often; most of all what
// nothing but the clock can tell a leader of.
func (d drawer) fault(from []Fault) Fault {
	weight := func(f Fault) int {
		switch {
		case f == Stop:
			return 4
		case info(f).group == networks, info(f).group == processes:
			return 2
		default:
			return 1
		}
	}
	total := 0
	for _, f := range from {
		total += weight(f)
	}
	n := d.IntN(total)
	for _, f := range from {
		if n -= weight(f); n < 0 {
			return f
		}
	}
	return from[0] // not reached
}

// between draws a span, in whole milliseconds.
func (d drawer) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}

// hold draws for how long: half of the lasting faults outlive a lease, and most of the
// stops.
func (d drawer) hold(lasts, stop bool) time.Duration {
	switch {
	case !lasts:
		return d.between(0, 300*time.Millisecond)
	case d.IntN(4) == 0, !stop && d.IntN(3) == 0:
		return d.between(100*time.Millisecond, d.ttl*6/10)
	default:
		return d.between(d.ttl+100*time.Millisecond, d.ttl+700*time.Millisecond)
	}
}

// strike draws the details of a fault.
func (d drawer) strike(f Fault) Strike {
	s := Strike{Fault: f, Pick: d.IntN(1 << 16)}
	switch info(f).group {
	case clocks, networks, processes:
		s.On = d.role()
	case members:
		s.On = Anyone
	}
	switch f {
	case Revoke, Delete:
		s.On = d.role()
	case CutLeader:
		s.On = Leader
	case CutOneWay, ClientOneWay:
		s.Way = d.oneWay()
	case Stall:
		s.Way = []Way{Both, In, Out}[d.IntN(3)]
	case BlackHole:
		s.All = d.IntN(2) == 0
	case Delay:
		if s.Inbound, s.Outbound = d.delay(), d.delay(); s.Inbound+s.Outbound == 0 {
			s.Outbound = d.ttl
		}
	case LostReply:
		s.Reply = []Reply{AnyReply, WriteReply, Registration}[d.IntN(3)]
		if s.Reply == WriteReply {
			s.On = Leader // nobody else writes
		}
	case Skew:
		s.Rate = d.rate()
	}
	return s
}

// role draws a participant's: most faults mean most to the leader.
func (d drawer) role() Role {
	switch d.IntN(10) {
	case 0, 1, 2:
		return Waiter
	case 3:
		return Anyone
	default:
		return Leader
	}
}

func (d drawer) oneWay() Way { return []Way{In, Out}[d.IntN(2)] }

// delay draws a delay below a third of the TTL, about the TTL, or above it.
func (d drawer) delay() time.Duration {
	switch d.IntN(4) {
	case 0:
		return 0
	case 1:
		return d.between(10*time.Millisecond, d.ttl/3)
	case 2:
		return d.between(d.ttl*8/10, d.ttl*12/10)
	default:
		return d.between(d.ttl/3, d.ttl*16/10)
	}
}

// The margin of a lease is a tenth of its TTL or more, and 200 ms at least: it covers
// clocks that are off by nine tenths of a tenth, however long the TTL.
const (
	slowest = 0.91
	fastest = 1.09
)

// rate draws how fast a clock runs; never about right.
func (d drawer) rate() float64 {
	off := 0.03 + (fastest-1-0.03)*d.Float64()
	if d.IntN(2) == 0 {
		return max(1-off, slowest)
	}
	return 1 + off
}
