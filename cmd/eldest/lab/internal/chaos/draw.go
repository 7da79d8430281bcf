package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Role is the role of the target of a fault.
type Role string

// The roles. Among members, Leader is etcd's leader.
const (
	Leader Role = "leader"
	Waiter Role = "waiter"
	Anyone Role = "anyone"
	// Successor is the waiter that is next in the queue.
	Successor Role = "successor"
)

// Way is a direction of traffic, as a member sees it.
type Way string

// The ways.
const (
	Both Way = "both ways"
	In   Way = "inbound"
	Out  Way = "outbound"
)

func (w Way) direction() etcdtest.Direction {
	switch w {
	case In:
		return etcdtest.Inbound
	case Out:
		return etcdtest.Outbound
	default:
		return etcdtest.BothWays
	}
}

// Reply is the kind of request whose reply is lost.
type Reply string

// The replies.
const (
	AnyReply     Reply = "any"
	WriteReply   Reply = "write"
	Registration Reply = "registration"
)

// Injection is one fault with all its drawn parameters. Fields that do not apply to the fault are
// zero.
type Injection struct {
	Fault Fault `json:"fault"`
	// On is a participant's role, or a member's for faults of members.
	On Role `json:"on,omitempty"`
	// Pick chooses among those that have the role.
	Pick int `json:"-"`
	Way  Way `json:"way,omitempty"`
	// All means that all members are behind the black hole.
	All bool `json:"all,omitempty"`
	// Inbound and Outbound are delays.
	Inbound  time.Duration `json:"inbound,omitempty"`
	Outbound time.Duration `json:"outbound,omitempty"`
	Reply    Reply         `json:"reply,omitempty"`
	// Rate is the rate of a clock.
	Rate float64 `json:"rate,omitempty"`
	// Alone is how long it is active before the next fault.
	Alone time.Duration `json:"alone,omitempty"`

	// target is the participant that was chosen for it in advance; nil: it is chosen when it is injected.
	target *candidate
}

// String formats the injection for a log line.
func (in Injection) String() string {
	var how []string
	add := func(there bool, format string, args ...any) {
		if there {
			how = append(how, fmt.Sprintf(format, args...))
		}
	}
	add(in.On != "", "%s", in.On)
	add(in.Way != "", "%s", in.Way)
	add(in.All, "all members")
	add(in.Inbound+in.Outbound > 0, "%v in, %v out", in.Inbound, in.Outbound)
	add(in.Reply != "", "%s", in.Reply)
	add(in.Alone != 0, "alone for %v", in.Alone)
	add(in.Rate != 0, "x%.2f", in.Rate)
	if len(how) == 0 {
		return string(in.Fault)
	}
	return string(in.Fault) + "(" + strings.Join(how, ", ") + ")"
}

// Plan is the plan of one round.
type Plan struct {
	// Number counts from 1 in its series.
	Number     int         `json:"round"`
	Injections []Injection `json:"strikes"`
	// Hold is how long the last fault is active before all are healed.
	Hold time.Duration `json:"hold"`
}

// String formats the plan for a log line.
func (p Plan) String() string {
	var all []string
	for _, in := range p.Injections {
		all = append(all, in.String())
	}
	return fmt.Sprintf("%s for %v", strings.Join(all, " + "), p.Hold)
}

// has reports whether a fault is in the plan.
func (p Plan) has(f Fault) bool {
	return slices.ContainsFunc(p.Injections, func(in Injection) bool { return in.Fault == f })
}

// Draw makes the plan of a round from the faults that may occur, of which there must be at least one. It
// depends only on its arguments. Draws are independent: a few rounds do not have every fault, but over a
// thousand rounds each fault comes thirty times or more, and those of participants twice as often.
//
// A round has one fault, or two of different groups, or a delay and another fault of the same network.
func Draw(seed uint64, number int, faults []Fault, ttl time.Duration) Plan {
	d := drawer{rand.New(rand.NewPCG(seed, uint64(number))), ttl}
	p := Plan{Number: number}
	kinds := []kind{d.kind(faults)}
	others := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return !combine(kinds[0], kindOf(f)) })
	if len(others) > 0 && (kinds[0].Fault == Skew || d.IntN(2) == 0) {
		kinds = append(kinds, d.kind(others))
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		if a.group == b.group && a.Fault == Delay {
			return -1
		}
		return int(a.group - b.group)
	})
	lasts := false
	for _, k := range kinds {
		p.Injections = append(p.Injections, d.injection(k))
		lasts = lasts || k.lasts
	}
	p.Hold = d.hold(lasts, p.has(Stop))
	if p.has(Silence) {
		p.Hold = 3 * Config{TTL: ttl}.longestBeat()
	}
	if len(kinds) == 2 && kinds[0].group == kinds[1].group {
		d.slowThenDead(&p)
	}
	return p
}

// combine reports whether two faults can share a round: those of different groups, and a delay and another
// lasting fault of a network. CompactHeld is a fault of a network, too: through one that another fault has
// cut there is nothing to hold back. A wrong clock has consequences only if renewals fail, so it is combined
// with faults that make them fail.
func combine(a, b kind) bool {
	switch ofNetwork := func(k kind) bool { return k.group == networks || k.Fault == CompactHeld }; {
	case a.group == networks && b.group == networks:
		return (a.Fault == Delay) != (b.Fault == Delay) && a.lasts && b.lasts
	case a.Fault == Skew || b.Fault == Skew:
		return a.group != b.group && a.lasts && b.lasts
	default:
		return a.group != b.group && (!ofNetwork(a) || !ofNetwork(b))
	}
}

type drawer struct {
	*rand.Rand
	ttl time.Duration
}

// kind draws a fault. Faults of participants end more tenures than faults of members, of which
// there are more kinds, so they are drawn more often; most often Stop, which a leader can notice
// only by its clock.
func (d drawer) kind(faults []Fault) kind {
	var all []kind
	for _, f := range faults {
		k, weight := kindOf(f), 1
		switch {
		case f == Stop:
			weight = 4
		case k.group == networks, k.group == processes:
			weight = 2
		}
		all = append(all, slices.Repeat([]kind{k}, weight)...)
	}
	return all[d.IntN(len(all))]
}

// between draws a duration, in whole milliseconds.
func (d drawer) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}

// hold draws how long a fault is active: half of the lasting faults outlive a lease, and most of
// the stops.
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

// slowThenDead makes a delay and another network fault follow each other: the leader's replies are
// late, but not too late, for as long as some renewals take; then it receives nothing for longer
// than its lease lives. An election that counts a deadline from the receipt of a reply is wrong by
// exactly that delay. (A renewal takes two replies, one after another, and begins a quarter of the
// TTL after the last one: it tolerates a third of the TTL.)
func (d drawer) slowThenDead(p *Plan) {
	slow, dead := &p.Injections[0], &p.Injections[1]
	slow.Inbound, slow.Outbound = 0, d.between(d.ttl*2/10, d.ttl*33/100)
	slow.Alone = d.between(d.ttl, d.ttl*3/2)
	slow.On, dead.On = Leader, Leader
	dead.Pick, dead.All = slow.Pick, dead.Fault == BlackHole
	p.Hold = d.between(d.ttl*17/10, d.ttl*22/10)
}

func (d drawer) injection(k kind) Injection {
	in := Injection{Fault: k.Fault, Pick: d.IntN(1 << 16)}
	switch k.group {
	case clocks, networks, processes:
		d.participant(&in)
	case members:
		in.On = Anyone
	}
	if k.draw != nil {
		k.draw(d, &in)
	}
	return in
}

// participant draws a participant's role: most faults affect the leader most.
func (d drawer) participant(in *Injection) {
	switch d.IntN(10) {
	case 0, 1, 2:
		in.On = Waiter
	case 3:
		in.On = Anyone
	default:
		in.On = Leader
	}
}

func (d drawer) leader(in *Injection) { in.On = Leader }

// front draws one of the first two in the queue.
func (d drawer) front(in *Injection) { in.On = []Role{Leader, Leader, Successor}[d.IntN(3)] }

func (d drawer) successor(in *Injection) { in.On = Successor }
func (d drawer) oneWay(in *Injection)    { in.Way = []Way{In, Out}[d.IntN(2)] }
func (d drawer) anyWay(in *Injection)    { in.Way = []Way{Both, In, Out}[d.IntN(3)] }
func (d drawer) all(in *Injection)       { in.All = d.IntN(2) == 0 }

func (d drawer) reply(in *Injection) {
	in.Reply = []Reply{AnyReply, WriteReply, Registration}[d.IntN(3)]
	if in.Reply == WriteReply {
		in.On = Leader // only leaders write
	}
}

func (d drawer) delays(in *Injection) {
	in.Inbound, in.Outbound = d.delay(), d.delay()
	if in.Inbound+in.Outbound == 0 {
		in.Outbound = d.ttl
	}
}

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

// The margin of a lease is a tenth of its TTL or more, and at least 200 ms: for any TTL it covers
// clock rates that are wrong by nine tenths of a tenth.
const (
	slowest = 0.91
	fastest = 1.09
)

// rate draws the rate of a clock, which is always wrong by 3 % or more.
func (d drawer) rate(in *Injection) {
	off := 0.03 + (fastest-1-0.03)*d.Float64()
	in.Rate = 1 + off
	if d.IntN(2) == 0 {
		in.Rate = max(1-off, slowest)
	}
}
