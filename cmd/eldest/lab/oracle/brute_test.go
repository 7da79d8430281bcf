package oracle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slot is an operation as the definition has it: one of unknown outcome has no
// return, and need not happen.
type slot struct {
	operation
	call, back time.Duration
	maybe      bool
}

// slots reads a history without any of the shortcuts of operations.
func slots(h *History) []slot {
	var all []slot
	open := map[string]int{}
	for _, e := range h.Events {
		o := operation{who: e.Who, token: e.Token, write: e.Write}
		switch e.Kind {
		case Won:
			o.verb, o.write = wins, ""
			all = append(all, slot{o, e.At, e.At, false})
		case Read:
			o.verb = reads
			all = append(all, slot{o, e.At, e.Until, false})
		case Sent:
			o.verb = writes
			open[e.Write] = len(all)
			all = append(all, slot{o, e.At, math.MaxInt64, true})
		case Acked:
			all[open[e.Write]].back, all[open[e.Write]].maybe = e.At, false
		case Refused: // never happens
			all[open[e.Write]].verb = ""
		}
	}
	return all
}

// explained tries every order, by the definition: no call after a return that came
// before it, and every operation that must happen does.
func explained(state register, left []slot) bool {
	must := false
	first := time.Duration(math.MaxInt64) // return of what must happen
	for _, s := range left {
		if s.verb != "" && !s.maybe {
			must = true
			first = min(first, s.back)
		}
	}
	if !must {
		return true
	}
	for i, s := range left {
		if s.verb == "" || s.call > first {
			continue
		}
		next, ok := state.step(s.operation)
		if !ok {
			continue
		}
		rest := append(append([]slot(nil), left[:i]...), left[i+1:]...)
		if explained(next, rest) {
			return true
		}
	}
	return false
}

// Linear agrees with the definition on small histories made at random, cut and
// uncut: what is left out, shortened and cut apart changes no verdict.
func TestLinearAgreesWithDefinition(t *testing.T) {
	const histories = 10_000
	rng := rand.New(rand.NewPCG(1, 2))
	verdicts, cuts := map[bool]int{}, 0
	for n := range histories {
		h := scribble(rng)
		want := explained(register{}, slots(h))
		verdicts[want]++
		cuts += len(segments(h.operations(), 1)) - 1
		for _, enough := range []int{1, 2, 1000} {
			got := linear(h, effort, enough)
			require.Equal(t, want, len(got) == 0, "history %d, parts of %d: %v\n%v", n, enough, got, h.Events)
		}
	}
	t.Logf("linearizable: %v; cut %d times", verdicts, cuts)
	require.Greater(t, verdicts[true], histories/10)
	require.Greater(t, verdicts[false], histories/10)
	require.Greater(t, cuts, histories/10)
}

// scribble makes a small history of writes, reads and wins that may or may not have
// an explanation. Names are few, so that reads find what was written.
func scribble(rng *rand.Rand) *History {
	var all [][]Event
	names := []string{"", "x", "y", "z"}
	span := func() (int, int) { a := rng.IntN(30); return a, a + rng.IntN(8) }
	for _, name := range names[1:] {
		from, to := span()
		outcome := []Kind{Acked, Acked, Unclear, "", Refused}[rng.IntN(5)]
		all = append(all, wrote(from, to, "w"+name, int64(2+rng.IntN(2)), name, outcome))
	}
	for range 1 + rng.IntN(3) {
		from, to := span()
		r := read(from, to, names[rng.IntN(len(names))])
		if rng.IntN(3) == 0 {
			r[0].Token = int64(2 + rng.IntN(2))
		}
		all = append(all, r)
	}
	if rng.IntN(2) == 0 {
		all = append(all, says(rng.IntN(30), "w", Won, int64(2+rng.IntN(2))))
	}
	return timeline(all...)
}
