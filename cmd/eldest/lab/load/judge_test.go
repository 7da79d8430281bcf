package load

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/observe"
)

// The judges are judged: each is shown what it must find, and what it must let pass.

func TestWritesAreJudged(t *testing.T) {
	key := func(token int) string { return fmt.Sprintf("%s%020d/0", written, token) }
	told := map[string]told{key(1): acknowledged, key(2): refused, key(3): unknown, key(10): acknowledged}
	found, wrong := hold(told, []string{key(1), key(10)})
	require.Empty(t, wrong)
	require.Equal(t, 2, found)
	_, wrong = hold(told, []string{key(1), key(3), key(10), key(11)})
	require.Empty(t, wrong, "of unknown outcome, or not noted yet")

	for what, order := range map[string][]string{
		"was acknowledged, and is not there": {key(1)},
		"was refused, and is there":          {key(1), key(2), key(10)},
		"was applied after one of":           {key(10), key(1)},
	} {
		_, wrong := hold(told, order)
		require.Len(t, wrong, 1, what)
		require.Contains(t, wrong[0], what)
	}
}

// tenures tells a line of tenures: seconds of the win and of the end, by token.
func tenures(told map[eldest.Token][2]int, patience time.Duration, evicted ...eldest.Token) []string {
	book := newBook()
	l := newLine(book, patience)
	zero := time.Now().Add(-time.Hour)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	for token, is := range told {
		l.begins(election.WonEvent{Token: token, At: at(is[0])})
		if is[1] > 0 {
			l.ends(election.EndedEvent{Token: token, Led: true, Cause: eldest.ErrResigned, At: at(is[1])})
		}
	}
	for _, token := range evicted {
		l.evicts(token)
	}
	l.settle(false)
	l.settle(true)
	return append(book.violations, book.lates...)
}

func TestTenuresAreJudged(t *testing.T) {
	const patience = 10 * time.Second
	require.Empty(t, tenures(map[eldest.Token][2]int{1: {1, 2}, 2: {3, 5}, 7: {6, 0}}, patience))
	require.Empty(t, tenures(map[eldest.Token][2]int{1: {1, 4}, 2: {3, 5}}, patience, 1), "somebody removed its key")

	overlap := tenures(map[eldest.Token][2]int{1: {1, 4}, 2: {3, 5}}, patience)
	require.Len(t, overlap, 1)
	require.Contains(t, overlap[0], "overlap by 1s")
	endless := tenures(map[eldest.Token][2]int{1: {1, 0}, 2: {3, 5}}, patience)
	require.Len(t, endless, 1)
	require.Contains(t, endless[0], "goes on")
	lull := tenures(map[eldest.Token][2]int{1: {1, 2}, 2: {20, 0}}, patience)
	require.Len(t, lull, 1)
	require.Contains(t, lull[0], "nobody led for 18s")
	// Tokens that do not rise with the wins (G2) overlap in the order of the tokens.
	require.NotEmpty(t, tenures(map[eldest.Token][2]int{2: {1, 2}, 1: {3, 4}}, patience))
}

func TestQueueIsJudged(t *testing.T) {
	zero := time.Now()
	queue := func(tokens ...int64) (q []observe.Entry) {
		for _, token := range tokens {
			q = append(q, observe.Entry{Candidate: eldest.Candidate{Key: fmt.Sprint("k", token), Token: eldest.Token(token)}})
		}
		return q
	}
	stand := func(tokens ...int64) (where []standing) {
		for _, token := range tokens {
			where = append(where, standing{fmt.Sprint("k", token), eldest.Token(token)})
		}
		return where
	}
	for name, tc := range map[string]struct {
		look
		at       int // how many seconds are between the looks
		want     string
		patience time.Duration
	}{
		"all is well":    {look: look{before: stand(1, 2), after: stand(1, 2), queue: queue(1, 2), leads: 1}, at: 100},
		"one has left":   {look: look{before: stand(1, 2), after: stand(3, 2), queue: queue(2), leads: 2}, at: 1},
		"one is lost":    {look: look{before: stand(1, 2), after: stand(1, 2), queue: queue(1), leads: 1}, at: 1, want: "stands nowhere"},
		"one is strange": {look: look{before: stand(1), after: stand(1), queue: queue(1, 9), leads: 1}, at: 1, want: "nobody stands there"},
		"one is stuck":   {look: look{before: stand(2), after: stand(2), queue: queue(2), leads: 1}, at: 9, want: "does not lead"},
	} {
		i := newInspector(10 * time.Second)
		var wrong []string
		for n := range patient + 1 {
			tc.look.at = zero.Add(time.Duration(n*tc.at) * time.Second)
			tc.ghost = func(string) (time.Time, bool) { return time.Time{}, false }
			wrong = append(wrong, i.inspect(tc.look)...)
		}
		if tc.want == "" {
			require.Empty(t, wrong, name)
			continue
		}
		require.NotEmpty(t, wrong, name)
		require.Contains(t, wrong[0], tc.want, name)
	}

	// A key that was left stays for a while, and not for ever.
	i := newInspector(10 * time.Second)
	l := look{before: stand(1), after: stand(1), queue: queue(1, 9), leads: 1, at: zero}
	l.ghost = func(key string) (time.Time, bool) { return zero.Add(-9 * time.Second), key == "k9" }
	require.Empty(t, i.inspect(l))
	l.at = zero.Add(2 * time.Second)
	require.Len(t, i.inspect(l), 1)
}

func TestGrowthIsJudged(t *testing.T) {
	series := func(n int, f func(i int) int64) (all []Sample) {
		for i := range n {
			all = append(all, Sample{Heap: f(i)})
		}
		return all
	}
	heap := func(s Sample) int64 { return s.Heap }
	require.False(t, flat(series(60, func(i int) int64 { return 1000 + int64(i%7)*10 }), heap).Grew(), "noise")
	require.False(t, flat(series(60, func(i int) int64 { return int64(min(1000, 500+100*i)) }), heap).Grew(), "warming up")
	require.False(t, flat(series(60, func(i int) int64 { return 1000 + int64(i%10/9)*9000 }), heap).Grew(), "peaks")
	grown := flat(series(60, func(i int) int64 { return 1000 + 4*int64(i) }), heap)
	require.True(t, grown.Grew(), "a slow leak: %+v", grown)
	require.False(t, flat(series(30, func(i int) int64 { return int64(i) }), heap).Judged, "too short")
	require.False(t, flat(nil, heap).Judged)
	require.False(t, flat(series(60, func(int) int64 { return 0 }), heap).Judged, "the system does not tell")
}

func TestALoadThatWasNotReachedIsInvalid(t *testing.T) {
	s := Full()
	book := newBook()
	book.add("departures", int64(0.79*600*10))
	missed := s.missed(book)
	require.Contains(t, missed, "departures: 4740 of 6000")
	require.Len(t, missed, 13, "nothing else has happened at all: %q", missed)
	book.add("departures", 100)
	require.Len(t, s.missed(book), 12)

	verdict := func(violations, late int, missed ...string) string {
		book := newBook()
		for range violations {
			book.violation("one")
		}
		for range late {
			book.late("one")
		}
		sum := &Summary{Scale: s, Missed: missed}
		sum.judge(book)
		return sum.Verdict
	}
	require.Equal(t, Held, verdict(0, 0))
	require.Equal(t, Invalid, verdict(0, 0, "departures"))
	require.Equal(t, Violated, verdict(1, 0, "departures"), "what was seen was seen")
	require.Equal(t, Violated, verdict(0, 1), "nobody was starved")
	require.Equal(t, Invalid, verdict(0, 1, "departures"))
}

func TestTimesAndKinds(t *testing.T) {
	h := &times{}
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990, 1: 1000} {
		require.InEpsilon(t, want, h.quantile(q).Seconds()*1000, 0.046)
	}
	require.Equal(t, "session lost", kindOf(fmt.Errorf("%w: %w", eldest.ErrNotLeading, eldest.ErrSessionLost)))
	require.Equal(t, "anything", kindOf(errors.New("anything")))
	book := newBook()
	book.failed("op", nil)
	require.Empty(t, book.errors)
}

func TestThePaceCatchesUp(t *testing.T) {
	p := pace{every: time.Minute, next: time.Now().Add(-time.Minute - time.Second)}
	require.Negative(t, p.wait(), "late")
	require.Positive(t, p.wait())
	p = pace{every: time.Minute, next: time.Now().Add(-time.Hour)}
	p.wait()
	require.Positive(t, p.wait(), "an hour's beats are not made up for")
}
