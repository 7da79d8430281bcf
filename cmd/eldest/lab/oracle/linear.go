package oracle

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// effort is how many steps the search may take for one segment before it gives up.
// A history of real participants takes a few for each operation; only one made to
// be hard takes more, and then nothing is known of it, which is no good news.
const effort = 1_000_000

// enough is how many operations are judged together at least: the search takes
// memory with the square of their number, and a little for each part.
const enough = 32

// Linear checks: guarded writes and reads are those of one register with tenures.
// There is an order of all of them in which each takes effect between its call and
// its return, each read returns the last write, and no write is by a token older
// than one whose win had been told. See operations for what becomes of refused
// writes and of those of unknown outcome.
func Linear(h *History) []Violation { return linear(h, effort, enough) }

func linear(h *History, effort int64, enough int) []Violation {
	var out []Violation
	for _, part := range segments(h.operations(), enough) {
		var budget atomic.Int64
		budget.Store(effort)
		if porcupine.CheckOperations(model(&budget), part) {
			continue
		}
		from, till := span(part)
		if budget.Load() < 0 {
			out = append(out, violated("linear", from, "INVALID: %d operations until %v were not judged in %d steps", len(part), till, effort))
			continue
		}
		first, ordered := stranger(part)
		out = append(out, violated("linear", time.Duration(first.Call), "of %d operations from %v to %v at most %d fit into an order, and (%v), from %v to %v, does not",
			len(part), from, till, ordered, first.Input, time.Duration(first.Call), time.Duration(first.Return)))
	}
	return out
}

// span returns the instants between which operations took place.
func span(ops []porcupine.Operation) (from, till time.Duration) {
	from = time.Duration(ops[0].Call)
	for _, op := range ops {
		till = max(till, time.Duration(op.Return))
	}
	return from, till
}

// stranger returns the first operation, by its return, that is not in the longest
// order which explains others, and how many are in that order.
func stranger(part []porcupine.Operation) (first porcupine.Operation, ordered int) {
	var budget atomic.Int64
	budget.Store(effort)
	_, info := porcupine.CheckOperationsVerbose(model(&budget), part, 0)
	longest := map[int]bool{}
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) <= len(longest) {
			continue
		}
		clear(longest)
		for _, op := range order {
			longest[op.Input.(operation).id] = true
		}
	}
	first.Return = math.MaxInt64
	for _, op := range part {
		if !longest[op.Input.(operation).id] && op.Return < first.Return {
			first = op
		}
	}
	return first, len(longest)
}

// Picture writes what Linear saw to a file, to be looked at in a browser: every
// operation in its time, and the longest orders found. It takes memory with the
// square of the operations: it is for the history of a violation.
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
