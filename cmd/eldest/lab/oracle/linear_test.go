package oracle

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The operation that does not fit is named, and the picture shows it.
func TestPicture(t *testing.T) {
	h, err := write([]string{
		"@10 a sent first 2", "@20 a acked first 2", "@30-40 r read first", "@50 a sent second 2", "@60 a acked second 2", "@70-80 r read first", "@90-100 r read second",
	})
	require.NoError(t, err)
	got := Linear(h)
	require.Len(t, got, 1)
	require.Equal(t, 70*tick, got[0].At)
	require.Contains(t, got[0].Text, `(r reads "first"), from 70ms to 80ms, does not`)
	path := filepath.Join(t.TempDir(), "picture.html")
	require.NoError(t, h.Picture(path))
	html, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, part := range []string{"<html", `r reads \"first\"`, `a, by 2, writes \"second\"`} {
		require.Contains(t, string(html), part)
	}
	require.ErrorIs(t, h.Picture(filepath.Join(t.TempDir(), "absent", "file")), os.ErrNotExist)
	require.NoError(t, (&History{}).Picture(path), "of nothing")
}

// A history that is too hard to judge does not pass.
func TestTooHard(t *testing.T) {
	h := &History{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		h.Events = append(h.Events, Event{At: 10, Kind: Sent, Who: "a", Token: 2, Write: name}, Event{At: 50, Kind: Acked, Who: "a", Token: 2, Write: name})
	}
	h.Events = append(h.Events, Event{At: 60, Until: 70, Kind: Read, Write: "a"}, Event{At: 80, Until: 90, Kind: Read, Write: "b"})
	for effort, invalid := range map[int64]bool{100: true, effort: false} {
		got := linear(h, effort, enough)
		require.Len(t, got, 1)
		require.Equal(t, invalid, got[0].Text[:7] == "INVALID", got)
	}
}

// slot is an operation by the definition: one of unknown outcome has no return, and need not take
// effect.
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
		o := operation{token: e.Token, write: e.Write}
		switch e.Kind {
		case Won:
			o.verb = wins
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

// explained tries every order, by the definition: no call after a return that came before it, and
// every operation that must take effect is in it.
func explained(state register, left []slot) bool {
	must, first := false, time.Duration(math.MaxInt64) // return of what must happen
	for _, s := range left {
		if s.verb != "" && !s.maybe {
			must, first = true, min(first, s.back)
		}
	}
	for i, s := range left {
		if s.verb == "" || s.call > first || !must {
			continue
		}
		if next, ok := state.step(s.operation); ok && explained(next, append(append([]slot(nil), left[:i]...), left[i+1:]...)) {
			return true
		}
	}
	return !must
}

// Linear agrees with the definition on small random histories, split and whole: omitting,
// shortening and splitting change no verdict.
func TestLinearAgreesWithDefinition(t *testing.T) {
	const histories = 10_000
	rng := rand.New(rand.NewPCG(1, 2))
	verdicts, cuts := map[bool]int{}, 0
	for n := range histories {
		h := scribble(t, rng)
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
func scribble(t *testing.T, rng *rand.Rand) *History {
	h := &History{}
	token := func() int64 { return int64(2 + rng.IntN(2)) }
	names := []string{"", "x", "y", "z"}
	for _, name := range names[1:] {
		e := Event{At: time.Duration(rng.IntN(30)), Kind: Sent, Who: name, Token: token(), Write: name}
		h.Events = append(h.Events, e)
		e.At += time.Duration(rng.IntN(8))
		if e.Kind = []Kind{Acked, Acked, Unclear, "", Refused}[rng.IntN(5)]; e.Kind != "" {
			h.Events = append(h.Events, e)
		}
	}
	for range 1 + rng.IntN(3) {
		e := Event{At: time.Duration(rng.IntN(30)), Kind: Read, Who: "r", Write: names[rng.IntN(len(names))]}
		if e.Until = e.At + time.Duration(rng.IntN(8)); rng.IntN(3) == 0 {
			e.Token = token()
		}
		h.Events = append(h.Events, e)
	}
	if rng.IntN(2) == 0 {
		h.Events = append(h.Events, Event{At: time.Duration(rng.IntN(30)), Kind: Won, Token: token()})
	}
	return h
}
