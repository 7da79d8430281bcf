package oracle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// operations returns what participants and readers did with the data key, in the
// order of calls. An operation takes effect at some instant between its call and
// its return, both included, so that those of one instant may be in any order.
//
//   - An acknowledged write: from when it was sent to when it was acknowledged.
//   - A refused write is none, and neither is what nobody was told of. Whoever reads
//     it reads what was never written.
//   - A write of unknown outcome may take effect at any time from when it was sent,
//     or never. If somebody read it then it took effect before that read was over;
//     if nobody did it makes no difference whether it did: whatever order explains
//     the rest explains it without. So no operation is open-ended, and the search
//     stays short, however many outcomes are unknown.
//   - A win is at the instant at which it was told, which is the latest at which it
//     can have been: what the guard forbids afterwards is then certainly forbidden.
func (h *History) operations() []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{} // numbers, for the picture
	add := func(o operation, call, back time.Duration) {
		o.id = len(ops)
		if _, known := clients[o.who]; !known {
			clients[o.who] = len(clients)
		}
		ops = append(ops, porcupine.Operation{
			ClientId: clients[o.who], Input: o, Call: int64(call), Return: int64(max(call, back)),
		})
	}
	seen := map[string]time.Duration{} // by write: when the first read of it was over
	for _, e := range h.Events {
		if e.Kind != Read {
			continue
		}
		if at, ok := seen[e.Write]; !ok || e.Until < at {
			seen[e.Write] = e.Until
		}
	}
	sent := map[string]Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case Won:
			add(operation{verb: wins, who: e.Who, token: e.Token}, e.At, e.At)
		case Read:
			add(operation{verb: reads, who: e.Who, token: e.Token, write: e.Write}, e.At, e.Until)
		case Sent:
			sent[e.Write] = e
		case Acked:
			// Not sent, as far as we were told: I3 says so if it is there.
			add(operation{verb: writes, who: e.Who, token: e.Token, write: e.Write}, sent[e.Write].At, e.At)
			delete(sent, e.Write)
		case Refused:
			delete(sent, e.Write)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if until, ok := seen[name]; ok {
			e := sent[name]
			add(operation{verb: writes, who: e.Who, token: e.Token, write: name}, e.At, until)
		}
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}
