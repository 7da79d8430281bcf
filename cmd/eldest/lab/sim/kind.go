package sim

import (
	"slices"
	"strings"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// kind is one kind of fault, or one proof that a fault took effect on a participant, by the name
// under which it is counted.
type kind struct {
	name   string
	rare   bool // takes effect too seldom for a suite of two hundred scenarios
	effect bool // proves that other faults took effect, and is no fault by itself
	ours   bool // needs what only contenders of ours do: confirm with a majority, or read a clock
	native bool // needs what only our own API has: transfers, heartbeats
	called bool // needs candidates that are withdrawn; those of nodes are not
}

// foreign reports whether the kind does not apply to an election.
func (k kind) foreign(impl contender.Contender) bool {
	return k.native && impl.Name() != contender.Eldest || k.ours && !faultless(impl) || k.called && impl.Name() == nodes{}.Name()
}

// faultless reports whether an election is ours, with any API: then no scenario may find a
// violation.
func faultless(impl contender.Contender) bool { return impl.Name() != contender.Concurrency }

// plenty is the number of scenarios from which rare kinds must have taken effect too.
const plenty = 500

// kinds returns all kinds that must have taken effect in a suite.
func kinds() []kind {
	var out []kind
	add := func(k kind, names ...string) {
		for _, k.name = range names {
			out = append(out, k)
		}
	}
	add(kind{}, "crash, power lost", "crash, process only", "cut both", "cut out", "cut in", "delay below", "delay about", "delay above",
		"leader stopped past its lease", "leader stopped, lease kept", "stopped anywhere", "compaction behind a cut")
	for _, v := range []verb{packets, fade, reset, starve, revoke, remove, overwrite, compact, full, restart, outage, stall} {
		add(kind{}, string(v))
	}
	add(kind{called: true}, string(flicker))
	add(kind{effect: true}, "bytes held", "bytes late", "packets sent again", "broken in a flicker", "waits for a processor",
		"refused: "+string(rig.NoSpace), "older token refused outside", "observed: led", "observed: nobody", "observed: unknown")
	add(kind{effect: true, rare: true}, "refused: "+string(rig.Compacted), "refused: "+string(rig.InvalidToken))
	add(kind{effect: true, ours: true}, "first use after a stop: not sure")
	add(kind{effect: true, ours: true, rare: true}, "session lost under a slow clock", "session lost under a fast clock")
	add(kind{effect: true, native: true}, "transferred to the next", "transferred past others", "transfer refused", "transfer given up",
		"was to yield", "drained", "suspended", "led on", "evicted")
	for _, p := range slices.Concat(points, []string{mailbox, beat, eviction}) {
		k := kind{ours: p == confirmation, native: p == mailbox || p == beat || p == eviction}
		if k.native || slices.Contains(replies, p) {
			k.rare = p == beat || p == eviction
			add(k, "reply lost: "+p)
		}
		k.rare = true
		add(k, "stopped before the "+p, "stopped at the reply of the "+p)
	}
	return out
}

// proofs counts what is known only at the end: the proofs that faults took effect.
func (r *run) proofs() {
	sum := r.struck
	rates := map[string]float64{}
	for _, p := range r.allParticipants() {
		met := p.host.Effects()
		sum["bytes held"] += met.Held
		sum["bytes late"] += met.Late
		sum["waits for a processor"] += met.Starved
		sum["packets sent again"] += met.Resent
		rates[p.name] = p.clock.ran()
	}
	for why, n := range r.world.Server.Refusals() {
		sum["refused: "+string(why)] += n
	}
	names := map[oracle.Kind]string{
		oracle.Suspended: "suspended", oracle.Resumed: "led on", oracle.Evicted: "evicted", oracle.Yielded: "was to yield",
		oracle.FenceRefused: "older token refused outside", oracle.Sure: "first use after a stop: sure", oracle.NotSure: "first use after a stop: not sure",
	}
	for _, e := range r.log.Events() {
		// A tenure that was ended by the clock, and not because its lease had been ended before.
		byDeadline := e.Kind == oracle.Ended && e.Lost && strings.Contains(e.Text, "before the deadline")
		switch {
		case names[e.Kind] != "" && e.By == "":
			sum[names[e.Kind]]++
		case e.Kind == oracle.Observed:
			sum["observed: "+e.Text]++
		case e.Kind == oracle.Ended && strings.Contains(e.Text, eldest.ErrDraining.Error()):
			sum["drained"]++
		case byDeadline && rates[e.Who] < 0.97:
			sum["session lost under a slow clock"]++
		case byDeadline && rates[e.Who] > 1.03:
			sum["session lost under a fast clock"]++
		}
	}
}
