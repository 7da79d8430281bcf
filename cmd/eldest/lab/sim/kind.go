package sim

import (
	"strings"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// kind is one kind of fault, or one proof that a fault reached somebody, by the name
// under which it is counted.
type kind struct {
	name   string
	rare   bool // strikes too seldom for a suite of two hundred scenarios
	effect bool // is the proof of others, and no fault by itself
	ours   bool // needs what only contenders of ours do: ask a majority, or read a clock
	native bool // needs what only our own API has: transfers
}

// foreign reports whether an election cannot show the kind.
func (k kind) foreign(impl contender.Contender) bool {
	return k.native && impl.Name() != contender.Eldest || k.ours && !faultless(impl)
}

// faultless reports whether an election is ours, by whatever API: then no scenario may find
// anything.
func faultless(impl contender.Contender) bool { return impl.Name() != contender.Concurrency }

// plenty is the number of scenarios from which on rare kinds must have struck too.
const plenty = 500

// kinds are all that must have struck in a suite.
func kinds() []kind {
	out := []kind{
		{name: "crash, power lost"}, {name: "crash, process only"},
		{name: "cut both"}, {name: "cut out"}, {name: "cut in"},
		{name: "delay below"}, {name: "delay about"}, {name: "delay above"},
		{name: string(packets)}, {name: string(fade)}, {name: string(flicker)}, {name: string(reset)}, {name: string(starve)},
		{name: string(revoke)}, {name: string(remove)}, {name: string(overwrite)},
		{name: string(compact)}, {name: "compaction behind a cut"},
		{name: string(full)}, {name: string(restart)}, {name: string(outage)}, {name: string(stall)},
		{name: "leader stopped past its lease"}, {name: "leader stopped, lease kept"}, {name: "stopped anywhere"},
		{name: "bytes held", effect: true}, {name: "bytes late", effect: true},
		{name: "packets sent again", effect: true}, {name: "broken in a flicker", effect: true}, {name: "waits for a processor", effect: true},
		{name: "first use after a stop: not sure", effect: true, ours: true},
		{name: "refused: " + string(rig.NoSpace), effect: true},
		{name: "refused: " + string(rig.Compacted), effect: true, rare: true},
		{name: "refused: " + string(rig.InvalidToken), effect: true, rare: true},
		{name: "session lost under a slow clock", effect: true, rare: true, ours: true},
		{name: "session lost under a fast clock", effect: true, rare: true, ours: true},
		{name: "older token refused outside", effect: true},
	}
	out = append(out,
		kind{name: "transferred to the next", effect: true, native: true},
		kind{name: "transferred past others", effect: true, native: true},
		kind{name: "transfer refused", effect: true, native: true},
		kind{name: "transfer given up", effect: true, native: true},
		kind{name: "was to give way", effect: true, native: true},
		kind{name: "retired", effect: true, native: true},
	)
	for _, name := range []string{"suspended", "led on", "evicted"} {
		out = append(out, kind{name: name, effect: true, native: true})
	}
	for _, point := range []string{beat, eviction} {
		out = append(out, kind{name: "reply lost: " + point, rare: true, native: true},
			kind{name: "stopped before the " + point, rare: true, native: true},
			kind{name: "stopped at the reply of the " + point, rare: true, native: true})
	}
	for _, reply := range replies {
		out = append(out, kind{name: "reply lost: " + reply, ours: reply == confirmation})
	}
	out = append(out, kind{name: "reply lost: " + mailbox, native: true})
	for _, point := range append([]string{mailbox}, points...) {
		ours, native := point == confirmation, point == mailbox
		out = append(out, kind{name: "stopped before the " + point, rare: true, ours: ours, native: native},
			kind{name: "stopped at the reply of the " + point, rare: true, ours: ours, native: native})
	}
	return out
}

// tally counts what is known only at the end: the proofs that faults took effect.
func (s *show) tally() {
	sum := s.struck
	rates := map[string]float64{}
	for _, a := range s.everybody() {
		met := a.host.Effects()
		sum["bytes held"] += met.Held
		sum["bytes late"] += met.Late
		sum["waits for a processor"] += met.Starved
		sum["packets sent again"] += met.Resent
		rates[a.name] = a.clock.ran()
	}
	for why, n := range s.world.Server.Refusals() {
		sum["refused: "+string(why)] += n
	}
	for _, e := range s.log.Events() {
		switch {
		case e.Kind == oracle.Ended && strings.Contains(e.Text, eldest.ErrRetired.Error()):
			sum["retired"]++
		case e.Kind == oracle.Suspended:
			sum["suspended"]++
		case e.Kind == oracle.Resumed:
			sum["led on"]++
		case e.Kind == oracle.Evicted:
			sum["evicted"]++
		case e.Kind == oracle.Yielded:
			sum["was to give way"]++
		case e.Kind == oracle.FenceRefused:
			sum["older token refused outside"]++
		case e.Kind == oracle.NotSure:
			sum["first use after a stop: not sure"]++
		case e.Kind == oracle.Sure:
			sum["first use after a stop: sure"]++
		case byDeadline(e) && rates[e.Who] < 0.97:
			sum["session lost under a slow clock"]++
		case byDeadline(e) && rates[e.Who] > 1.03:
			sum["session lost under a fast clock"]++
		}
	}
}

// byDeadline reports whether a tenure was ended by the clock, and not because etcd or
// anybody else had ended its lease before.
func byDeadline(e oracle.Event) bool {
	return e.Kind == oracle.Ended && e.Lost && strings.Contains(e.Text, "before the deadline")
}
