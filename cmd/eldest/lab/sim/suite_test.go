package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

// A process runs one bubble at a time (package rig), so parallel scenarios need processes: the test
// binary starts itself, with other seeds for each.

// job is a range of seeds of an election for one worker process.
type job struct {
	impl  string
	style style
	first int
	count int
}

func (j job) String() string {
	return fmt.Sprintf("%s-%s-%06d-%d", j.impl, j.style, j.first, j.count)
}

// longest is the limit of a job: a job that hangs is a failure.
const longest = 30 * time.Minute

// do runs a job in a process of its own and returns its outcomes. They are in a file of the
// directory afterwards; a job whose file exists already is not run again.
func (j job) do(ctx context.Context, dir string) ([]outcome, error) {
	file := filepath.Join(dir, j.String()+".jsonl")
	if all, err := load(file); err == nil {
		return all, nil
	}
	part := file + ".part"
	_ = os.Remove(part)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestScenarios$", "-test.timeout=0",
		"-sim.out="+part, "-sim.impl="+j.impl, "-sim.style="+string(j.style),
		fmt.Sprintf("-sim.first=%d", j.first), fmt.Sprintf("-sim.seeds=%d", j.count))
	// One thread is a tenth cheaper than two, but goroutines that run in parallel interleave in
	// other ways: so a few processes have two.
	threads := 1
	if j.first/j.count%5 == 4 {
		threads = 2
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", threads),
		// Goroutines that begin with stacks of the average size are a tenth cheaper.
		"GODEBUG="+strings.Trim(os.Getenv("GODEBUG")+",adaptivestackstart=1", ","))
	said, err := cmd.CombinedOutput()
	if err == nil {
		err = os.Rename(part, file)
	}
	all, broken := load(file)
	if err = errors.Join(err, broken); err == nil && len(all) != j.count {
		err = fmt.Errorf("%d outcomes", len(all))
	}
	if err != nil {
		done, _ := load(part)
		return nil, fmt.Errorf("%s ended after %d scenarios: %w\n%s", j, len(done), err, said[max(0, len(said)-8<<10):])
	}
	return all, nil
}

// load reads the outcomes in a file.
func load(file string) (all []outcome, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for in := json.NewDecoder(f); ; {
		var o outcome
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, o)
	}
}

// sizes are the numbers of seeds of a style in one job.
var sizes = map[style]int{ordinary: 25, dense: 4, quiet: 1}

// jobs returns the jobs for so many seeds of each style, in an order in which all styles progress at the
// same rate.
func jobs(impl string, first int, counts map[style]int) []job {
	at := map[job]float64{}
	for st, n := range counts {
		for i := 0; i < n; i += sizes[st] {
			at[job{impl, st, first + i, min(sizes[st], n-i)}] = float64(i+sizes[st]/2) / float64(n)
		}
	}
	return slices.SortedFunc(maps.Keys(at), func(a, b job) int {
		return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a.style, b.style), cmp.Compare(a.first, b.first))
	})
}

// ledger is the summary of a suite.
type ledger struct {
	Command     string           `json:"command"`
	Revision    string           `json:"revision"`
	Election    string           `json:"election"`
	Begun       time.Time        `json:"begun"`
	Updated     time.Time        `json:"updated"`
	WallSeconds float64          `json:"wallSeconds"` // of the last invocation of the run
	Processes   int              `json:"processes"`
	Complete    bool             `json:"complete"`
	Invalid     []string         `json:"invalid,omitempty"`
	Broken      []string         `json:"broken,omitempty"` // ranges whose process failed
	Seeds       map[style]string `json:"seeds"`
	Total       *sum             `json:"total"`
	Styles      map[style]*sum   `json:"styles"`
}

func newLedger(impl string) *ledger {
	return &ledger{
		Command:  "go test ./cmd/eldest/lab/sim " + strings.Join(os.Args[1:], " "),
		Election: impl, Begun: time.Now(), Processes: runtime.NumCPU(),
		Seeds: map[style]string{}, Total: newSum(), Styles: map[style]*sum{},
	}
}

// run runs so many scenarios of each style, from one seed on, in parallel processes with their files in a
// directory. None of a faultless election may fail: it starts no more of them after a few failures.
func (l *ledger) run(t *testing.T, dir string, first int, counts map[style]int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	free := make(chan struct{}, l.Processes)
	for st, n := range counts {
		l.Seeds[st], l.Styles[st] = fmt.Sprintf("%d to %d", first, first+n-1), newSum()
	}
	goesOn := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(l.Broken) == 0 && len(l.Total.Failed) < stopAfter
	}
	for _, j := range jobs(l.Election, first, counts) {
		free <- struct{}{}
		if !goesOn() {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			outcomes, err := j.do(t.Context(), dir)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				l.Broken = append(l.Broken, fmt.Sprintf("%s: %v", j, err))
			}
			for _, o := range outcomes {
				l.Styles[j.style].add(o)
				l.Total.add(o)
			}
			l.Updated, l.WallSeconds = time.Now(), time.Since(l.Begun).Seconds()
			if dir == *recordDir {
				l.save(t)
				fmt.Printf("%s %s: %d scenarios, %d tenures, %.3f virtual years, violations %v, broken %d\n",
					l.Updated.Format("15:04:05"), j, l.Total.Scenarios, l.Total.Tenures, l.Total.Years, l.Total.Violations, len(l.Broken))
			}
		})
	}
	all.Wait()
	for _, o := range l.Total.Failed {
		t.Error(o.Report)
	}
	l.report(t)
	require.False(t, t.Failed(), "%d scenarios failed", len(l.Total.Failed))
	require.Empty(t, l.Broken)
	if s := l.Styles[ordinary]; s != nil {
		require.GreaterOrEqual(t, s.Tenures, tenuresEach*s.Scenarios, "INVALID: too few tenures")
	}
}

// save writes the summary of a reference run, completely or not at all.
func (l *ledger) save(t *testing.T) {
	b, err := json.MarshalIndent(l, "", "  ")
	path := filepath.Join(*recordDir, "summary.json")
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Error(err)
	}
}

// judge decides whether the suite is valid: each kind of fault took effect, and no scenario was invalid.
func (l *ledger) judge(impl contender.Contender) {
	for _, name := range l.Total.never(impl) {
		l.Invalid = append(l.Invalid, "never in any scenario: "+name)
	}
	for _, o := range l.Total.Failed {
		if o.Invalid != "" {
			l.Invalid = append(l.Invalid, fmt.Sprintf("%s %d: %s", o.Style, o.Seed, o.Invalid))
		}
	}
	l.Complete = len(l.Invalid) == 0 && len(l.Broken) == 0
}

func (l *ledger) report(t *testing.T) {
	s := l.Total
	t.Logf("%d scenarios, %d tenures, %.1f virtual hours in %v, %.1f ms each; without a fault: %d",
		s.Scenarios, s.Tenures, s.Years*year.Hours(), time.Since(l.Begun).Round(time.Millisecond), 1000*s.Seconds/float64(max(1, s.Scenarios)), s.Mild)
	for _, name := range slices.Sorted(maps.Keys(s.Struck)) {
		t.Logf("%9d %s", s.Struck[name], name)
	}
	t.Logf("violations: %v", s.Violations)
}
