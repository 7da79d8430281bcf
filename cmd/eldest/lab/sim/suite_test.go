package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

// struckAll is a suite in which everything struck.
func struckAll(scenarios int) *sum {
	s := newSum()
	s.Scenarios = scenarios
	for _, k := range kinds() {
		s.Struck[k.name] = 1
	}
	return s
}

// A suite in which one kind of fault never struck says so; a small one is excused the
// rare kinds.
func TestSuiteNamesWhatNeverStruck(t *testing.T) {
	require.Empty(t, struckAll(plenty).never(contender.Ours{}))
	for _, k := range kinds() {
		s := struckAll(plenty)
		delete(s.Struck, k.name)
		require.Equal(t, []string{k.name}, s.never(contender.Ours{}))
		require.Len(t, s.never(concurrency(t)), map[bool]int{true: 0, false: 1}[k.ours || k.native])
		require.Len(t, s.never(named(t, contender.DropIn)), map[bool]int{true: 0, false: 1}[k.native])
		s.Scenarios = plenty - 1
		require.Len(t, s.never(contender.Ours{}), map[bool]int{true: 0, false: 1}[k.rare])
	}
}

// Every verb of the menu can be drawn, and every kind has a name of its own.
func TestMenu(t *testing.T) {
	drawn := map[verb]bool{}
	for seed := range uint64(300) {
		for _, st := range draw(seed).steps {
			drawn[st.verb] = true
		}
	}
	for _, m := range menu {
		require.True(t, drawn[m.verb], m.verb)
	}
	names := map[string]bool{}
	for _, k := range kinds() {
		require.False(t, names[k.name], k.name)
		names[k.name] = true
	}
}

// A run on record is complete only with enough of everything and nothing broken.
func TestLedger(t *testing.T) {
	full := func() *ledger {
		total := struckAll(plenty)
		total.Tenures, total.Years = *leastTenures, *leastYears
		return &ledger{Total: total}
	}
	for name, c := range map[string]struct {
		spoil    func(*ledger)
		complete bool
	}{
		"all":             {func(*ledger) {}, true},
		"few tenures":     {func(l *ledger) { l.Total.Tenures-- }, false},
		"little time":     {func(l *ledger) { l.Total.Years /= 2 }, false},
		"never struck":    {func(l *ledger) { l.Total.Struck["cut in"] = 0 }, false},
		"broken range":    {func(l *ledger) { l.Broken = []string{"x"} }, false},
		"invalid":         {func(l *ledger) { l.Total.Failed = []outcome{{Invalid: "nobody ever led"}} }, false},
		"only violations": {func(l *ledger) { l.Total.Failed = []outcome{{sum: sum{Violations: map[string]int{"I1": 1}}}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := full()
			c.spoil(l)
			l.judge(contender.Ours{})
			require.Equal(t, c.complete, l.Complete, l.Invalid)
		})
	}
}

// Every seed is in one job, and styles come forward alike.
func TestMixed(t *testing.T) {
	jobs := mixed("eldest", map[style]int{quiet: 2}, map[style]int{ordinary: 120, dense: 8, quiet: 6})
	seen := map[string]int{}
	last := map[style]int{}
	for i, j := range jobs {
		for n := j.first; n < j.first+j.count; n++ {
			seen[fmt.Sprint(j.style, n)]++
		}
		last[j.style] = i
	}
	require.Len(t, seen, 120+8+4)
	for what, times := range seen {
		require.Equal(t, 1, times, what)
	}
	for st, i := range last {
		require.Greater(t, i, len(jobs)/2, "%s is over too soon", st)
	}
}

// What is done is not done again; what a worker could not do is an error, and no file
// is left that would count as done.
func TestJobs(t *testing.T) {
	dir := t.TempDir()
	want := outcome{Style: ordinary, Seed: 7, sum: sum{Scenarios: 1, Tenures: 3, Struck: map[string]int{"cut in": 1}}}
	line, err := json.Marshal(want)
	require.NoError(t, err)
	file := filepath.Join(dir, "done.jsonl")
	require.NoError(t, os.WriteFile(file, append(line, '\n'), 0o600))
	nobody := job{"nobody", ordinary, 7, 1}
	got, err := nobody.do(t.Context(), file)
	require.NoError(t, err)
	require.Equal(t, []outcome{want}, got)

	other := filepath.Join(dir, "other.jsonl")
	_, err = nobody.do(t.Context(), other)
	require.ErrorContains(t, err, "no implementation is named")
	require.NoFileExists(t, other)

	s := newSum()
	s.add(want)
	s.add(outcome{Style: dense, Seed: 9, Report: "x", sum: sum{
		Scenarios: 1, Violations: map[string]int{"I1": 2}, Found: map[string]*found{"I1": {1, []string{"dense 9"}}},
	}})
	sums := merged(map[style]*sum{ordinary: s})
	require.Equal(t, 2, sums.Scenarios)
	require.Equal(t, map[string]int{"I1": 2}, sums.Violations)
	require.Equal(t, &found{1, []string{"dense 9"}}, sums.Found["I1"])
	require.Len(t, sums.Failed, 1)
}
