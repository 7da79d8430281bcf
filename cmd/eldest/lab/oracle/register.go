package oracle

import (
	"fmt"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// verb is what an operation does to the register.
type verb string

const (
	begins verb = "begins" // the state before a part of the history
	wins   verb = "wins"
	writes verb = "writes"
	reads  verb = "reads"
)

// operation is what a participant asked of the register, and was told.
type operation struct {
	id    int // tells equal ones apart
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

// register is the state of what leaders write: the newest tenure that anybody has
// been told of, and the last write. The guard's promise is that tenure and value
// move together: once the holder of a newer token has been told of its win,
// nothing by an older token happens any more.
type register struct {
	token int64
	write string
}

// step applies an operation that was told to have succeeded. It returns false
// where a register with tenures would not have let it.
func (r register) step(o operation) (register, bool) {
	switch o.verb {
	case begins:
		return register{o.token, o.write}, true
	case wins:
		// The win itself came earlier than the telling, and may be told after that
		// of a newer tenure: it makes nothing older possible again.
		r.token = max(r.token, o.token)
		return r, true
	case writes:
		return register{o.token, o.write}, o.token >= r.token
	case reads:
		if o.token != 0 && o.token < r.token {
			return r, false
		}
		r.token = max(r.token, o.token)
		return r, r.write == o.write
	}
	panic("no such verb: " + o.verb) // ours, not what was loaded
}

// model is the register as porcupine sees it. Each step costs; when nothing is left
// to spend nothing is possible, and the search ends. Steps are the same on every
// machine and in virtual time, which a time-out is not.
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
