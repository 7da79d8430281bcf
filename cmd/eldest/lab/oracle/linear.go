package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// effort is how many steps the search may take for one segment. A history of real participants
	// takes a few for each operation; only one made to be hard takes more: then nothing is known of
	// it, which is reported.
	effort = 1_000_000
	// enough is the least number of operations that are judged together: the memory of the search
	// grows with the square of their number, and a little with each part.
	enough = 32
)

// Linear checks that guarded writes and reads are those of one register with tenures. There is an
// order of all of them in which each takes effect between its call and its return, each read
// returns the last write, and no write has a token older than one whose win had been reported. See
// operations for refused writes and for those of unknown outcome.
func Linear(h *History) []Violation { return linear(h, effort, enough) }

func linear(h *History, effort int64, enough int) []Violation {
	out := found{invariant: "linear"}
	for _, part := range segments(h.operations(), enough) {
		var budget atomic.Int64
		budget.Store(effort)
		if porcupine.CheckOperations(model(&budget), part) {
			continue
		}
		from, till := time.Duration(part[0].Call), time.Duration(0)
		for _, op := range part {
			till = max(till, time.Duration(op.Return))
		}
		if budget.Load() < 0 {
			out.add(from, "INVALID: %d operations until %v were not judged in %d steps", len(part), till, effort)
			continue
		}
		first, ordered := misfit(part)
		out.add(time.Duration(first.Call), "of %d operations from %v to %v at most %d fit into an order, and (%v), from %v to %v, does not",
			len(part), from, till, ordered, first.Input, time.Duration(first.Call), time.Duration(first.Return))
	}
	return out.all
}

// misfit returns the first operation, by its return, that is not in the longest
// order which explains others, and how many are in that order.
func misfit(part []porcupine.Operation) (first porcupine.Operation, ordered int) {
	var budget atomic.Int64
	budget.Store(effort)
	_, info := porcupine.CheckOperationsVerbose(model(&budget), part, 0)
	var longest []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	first.Return = math.MaxInt64
	for _, op := range part {
		if !slices.ContainsFunc(longest, func(in porcupine.Operation) bool { return in.Input == op.Input }) && op.Return < first.Return {
			first = op
		}
	}
	return first, len(longest)
}

// Picture writes the operations that Linear checks to a file for a browser: every operation in its
// time, and the longest orders found. Its memory grows with the square of the operations: it is for
// the history of a violation.
func (h *History) Picture(path string) error {
	parts := segments(h.operations(), enough)
	var budget atomic.Int64
	budget.Store(effort * int64(len(parts)))
	m := model(&budget)
	m.Partition = func([]porcupine.Operation) [][]porcupine.Operation { return parts }
	_, info := porcupine.CheckOperationsVerbose(m, nil, 0)
	budget.Store(math.MaxInt64) // drawing repeats the steps that were found possible
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // for errors; closing twice is harmless
	if err := porcupine.Visualize(m, info, f); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return f.Close()
}

// verb is what an operation does to the register.
type verb string

const (
	begins verb = "begins" // the state before a part of the history
	wins   verb = "wins"
	writes verb = "writes"
	reads  verb = "reads"
)

// operation is an operation of a participant on the register, with its result.
type operation struct {
	id    int // distinguishes equal operations
	verb  verb
	who   string
	token int64  // of a read: 0, or the token that guarded it
	write string // the name written or read; empty: nothing was written yet
}

func (o operation) String() string {
	switch {
	case o.verb == reads && o.token == 0:
		return fmt.Sprintf("%s reads %q", o.who, o.write)
	case o.verb == wins:
		return fmt.Sprintf("%s wins %d", o.who, o.token)
	case o.verb == begins:
		return fmt.Sprintf("begins with %q, token %d", o.write, o.token)
	default:
		return fmt.Sprintf("%s, by %d, %s %q", o.who, o.token, o.verb, o.write)
	}
}

// register is the state of the data that leaders write: the newest tenure of which a participant
// has been notified, and the last write. The guard guarantees that tenure and value change
// together: once the holder of a newer token has been notified of its win, no operation of an older
// token takes effect.
type register struct {
	token int64
	write string
}

// step applies an operation that was reported as successful. It returns false if a register with
// tenures would not have allowed it.
func (r register) step(o operation) (register, bool) {
	switch o.verb {
	case begins:
		return register{o.token, o.write}, true
	case wins:
		// The win itself came earlier than the report, and may be reported after that of a newer
		// tenure: it does not make older operations possible again.
		return register{max(r.token, o.token), r.write}, true
	case writes:
		return register{o.token, o.write}, o.token >= r.token
	case reads:
		return register{max(r.token, o.token), r.write}, (o.token == 0 || o.token >= r.token) && r.write == o.write
	}
	panic("no such verb: " + o.verb) // a bug here, not in what was loaded
}

// model is porcupine's model of the register. Each step uses the budget; when nothing is left no
// step is possible, and the search ends. The number of steps is the same on every machine and in
// virtual time, unlike a timeout.
func model(budget *atomic.Int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) {
			if budget.Add(-1) < 0 {
				return false, state
			}
			next, ok := state.(register).step(input.(operation))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return input.(operation).String() },
		DescribeState: func(state any) string {
			r := state.(register)
			return fmt.Sprintf("token %d, %q", r.token, r.write)
		},
	}
}

// operations returns the operations of participants and readers on the data key, in the order of
// calls. An operation takes effect at some instant between its call and its return, both included,
// so that those of one instant may be in any order.
//
//   - An acknowledged write: from when it was sent to when it was acknowledged.
//   - A refused write is no operation, and neither is a write that no participant reported. A read
//     that returns it returns what was never written.
//   - A write of unknown outcome may take effect at any time from when it was sent, or never. If a
//     participant read it then it took effect before that read was over; if none did it makes no
//     difference whether it did: an order that explains the rest needs no such write. So no
//     operation is open-ended, and the search stays short, however many outcomes are unknown.
//   - A win is at the instant at which it was reported, which is the latest at which it can have
//     been: what the guard forbids afterwards is then certainly forbidden.
func (h *History) operations() []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{} // numbers, for the picture
	add := func(v verb, e Event, call, back time.Duration) {
		if _, known := clients[e.Who]; !known {
			clients[e.Who] = len(clients)
		}
		o := operation{id: len(ops), verb: v, who: e.Who, token: e.Token, write: e.Write}
		ops = append(ops, porcupine.Operation{ClientId: clients[o.who], Input: o, Call: int64(call), Return: int64(max(call, back))})
	}
	seen := map[string]time.Duration{} // by write: when the first read of it was over
	for _, e := range h.Events {
		if at, ok := seen[e.Write]; e.Kind == Read && (!ok || e.Until < at) {
			seen[e.Write] = e.Until
		}
	}
	sent := map[string]Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case Won:
			add(wins, Event{Who: e.Who, Token: e.Token}, e.At, e.At)
		case Read:
			add(reads, e, e.At, e.Until)
		case Sent:
			sent[e.Write] = e
		case Acked:
			// If it was not reported as sent: I3 reports that if it was committed.
			add(writes, e, sent[e.Write].At, e.At)
			delete(sent, e.Write)
		case Refused:
			delete(sent, e.Write)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if until, ok := seen[name]; ok {
			add(writes, sent[name], sent[name].At, until)
		}
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}

// segments splits a history where the state of the register is certain, so that each part can be
// judged by itself. That is so after a read or write that overlapped with no other operation: all
// earlier operations were over, so the value is that one's, and the token is the newest of all so
// far, whatever their order was. Each part but the first begins with that state, and each but the
// last has at least enough operations.
//
// The split loses nothing: orders that explain the parts, end to end, explain the whole, and the
// other way round.
func segments(ops []porcupine.Operation, enough int) [][]porcupine.Operation {
	var all [][]porcupine.Operation
	var part []porcupine.Operation
	over := int64(-1)  // when all before this one were over
	newest := int64(0) // token so far
	for i, op := range ops {
		o := op.Input.(operation)
		part = append(part, op)
		newest = max(newest, o.token)
		alone := op.Call > over && (i+1 == len(ops) || ops[i+1].Call > op.Return)
		over = max(over, op.Return)
		if !alone || o.verb == wins || len(part) < enough || i+1 == len(ops) {
			continue
		}
		all = append(all, part)
		part = []porcupine.Operation{{
			ClientId: op.ClientId, Call: op.Return, Return: op.Return,
			Input: operation{id: -1, verb: begins, who: o.who, token: newest, write: o.write},
		}}
	}
	if len(part) > 0 {
		all = append(all, part)
	}
	return all
}
