package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// Which scenarios to run. The environment variables are for runs over many packages, not all of
// which have the flags; a flag overrides its variable.
var (
	seeds     = flag.Int("sim.seeds", env("ELDEST_SIM_SEEDS", 100), "how many seeded scenarios to run")
	seed      = flag.Int("sim.seed", env("ELDEST_SIM_SEED", -1), "the one seed to run")
	first     = flag.Int("sim.first", env("ELDEST_SIM_FIRST", -1), "the first of the seeds to run; -1: ELDEST_SEED, or else a random one, but 0 in a reference run")
	styleName = flag.String("sim.style", string(ordinary), "the style of the scenarios: ordinary, dense or quiet")
	implName  = flag.String("sim.impl", contender.Eldest, "whose election: eldest, elector, drop-in or concurrency")
	procs     = flag.Int("sim.procs", runtime.NumCPU(), "how many processes run scenarios at once")
	out       = flag.String("sim.out", "", "the file to which a worker process appends what became of its scenarios; for use by the tests themselves")
)

// The reference run. Its results are kept in the directory, a file for each range of seeds, so that
// the same command continues a run that was stopped.
var (
	recordDir    = flag.String("sim.record", "", "the directory of a reference run: seeds of all styles, until there are as many tenures and as much time as wanted")
	recordCounts = map[style]*int{
		ordinary: flag.Int("sim.ordinary", 10_000, "of a reference run: how many ordinary scenarios at least"),
		dense:    flag.Int("sim.dense", 600, "of a reference run: how many dense scenarios at least"),
		quiet:    flag.Int("sim.quiet", 50, "of a reference run: how many quiet scenarios at least"),
	}
	leastTenures = flag.Int("sim.tenures", 1_000_000, "of a reference run: how many tenures it must have")
	leastYears   = flag.Float64("sim.years", 1, "of a reference run: how many virtual years it must have")
	ofRevision   = flag.String("sim.revision", "", "of a reference run: the revision that the test was built from; default: what is checked out")
)

func TestMain(m *testing.M) {
	// Each scenario makes a small heap and drops it: collecting less often saves
	// a tenth of the time.
	debug.SetGCPercent(1000)
	flag.Parse()
	if *seeds < 1 || *first < -1 || *seed < -1 || *procs < 1 {
		// Running with other values would look like success.
		fmt.Fprintf(os.Stderr, "-sim.seeds %d, -sim.first %d, -sim.seed %d, -sim.procs %d: no other can be negative than -1, and it takes a seed and a process\n", *seeds, *first, *seed, *procs)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

// env reads a number from the environment; an invalid one ends the process, since running with
// another value would look like success.
func env(name string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	return n
}

// named returns the contender of that name.
func named(t *testing.T, name string) contender.Contender {
	if name == (nodes{}).Name() {
		return nodes{}
	}
	c, err := contender.Named(name)
	require.NoError(t, err)
	require.Contains(t, []string{contender.Eldest, contender.DropIn, contender.Concurrency}, name, "no scenarios are played with it")
	return c
}

// concurrency is etcd's own package. Its known faults test the checkers.
func concurrency(t *testing.T) contender.Contender { return named(t, contender.Concurrency) }

// play runs a scenario in a world of its own.
func play(t *testing.T, p *plan) (r *result) {
	rig.RunWith(t, p.options(), func(w *rig.World) { r = p.play(w) })
	if r == nil {
		t.Fatalf("%s seed %d did not come to its end; its plan:\n%v", p.style, p.seed, p)
	}
	return r
}

// A process runs one bubble at a time (package rig), so parallel scenarios need processes: the test
// binary starts itself, with other seeds for each.

// job is a range of seeds for one worker process.
type job struct {
	style style
	first int
	count int
}

func (j job) String() string {
	return fmt.Sprintf("%s-%s-%06d-%d", *implName, j.style, j.first, j.count)
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
		"-sim.out="+part, "-sim.impl="+*implName, "-sim.style="+string(j.style),
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

// work is the work of a worker process: it runs its scenarios one after another and appends the
// outcome of each to a file. It judges nothing: the process that started it does.
func work(t *testing.T, j job) {
	f, err := os.OpenFile(*out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	enc, impl := json.NewEncoder(f), named(t, *implName)
	for n := j.first; n < j.first+j.count; n++ {
		begun := time.Now()
		r := play(t, j.style.draw(impl, uint64(n)))
		require.NoError(t, enc.Encode(r.outcome(time.Since(begun))))
	}
}

// sizes are the numbers of seeds of a style in one job.
var sizes = map[style]int{ordinary: 25, dense: 4, quiet: 1}

// jobs returns the jobs for the seeds from and to, by style, in an order in which all styles
// progress at the same rate.
func jobs(from, to map[style]int) []job {
	at := map[job]float64{}
	for st, n := range to {
		for i := from[st]; i < n; i += sizes[st] {
			at[job{st, *first + i, min(sizes[st], n-i)}] = float64(i-from[st]+sizes[st]/2) / float64(n-from[st])
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
	WallSeconds float64          `json:"wallSeconds"` // of all invocations of the run
	Processes   int              `json:"processes"`
	Complete    bool             `json:"complete"`
	Invalid     []string         `json:"invalid,omitempty"`
	Broken      []string         `json:"broken,omitempty"` // ranges whose process failed
	Seeds       map[style]string `json:"seeds"`
	Total       *sum             `json:"total"`
	Styles      map[style]*sum   `json:"styles"`
}

func newLedger() *ledger {
	return &ledger{Election: *implName, Begun: time.Now(), Processes: *procs, Seeds: map[style]string{}, Total: newSum(), Styles: map[style]*sum{}}
}

// run runs the scenarios of the seeds from and to, in parallel processes, and calls done after each
// job, one at a time. It starts no more jobs when done returns false.
func (l *ledger) run(ctx context.Context, dir string, from, to map[style]int, done func(job) bool) {
	var mu sync.Mutex
	var all sync.WaitGroup
	free := make(chan struct{}, *procs)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for st, n := range to {
		l.Seeds[st] = fmt.Sprintf("%d to %d", *first, *first+n-1)
		if l.Styles[st] == nil {
			l.Styles[st] = newSum()
		}
	}
	for _, j := range jobs(from, to) {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			outcomes, err := j.do(context.WithoutCancel(ctx), dir)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				l.Broken = append(l.Broken, fmt.Sprintf("%s: %v", j, err))
			}
			for _, o := range outcomes {
				l.Styles[j.style].add(o)
				l.Total.add(o)
			}
			l.Updated = time.Now()
			if !done(j) {
				stop()
			}
		})
	}
	all.Wait()
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

// record does the reference run.
func record(t *testing.T, impl contender.Contender) {
	require.NoError(t, os.MkdirAll(*recordDir, 0o755))
	lock, err := os.OpenFile(filepath.Join(*recordDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer func() { _ = lock.Close() }()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), "another run has the directory")
	path := filepath.Join(*recordDir, "summary.json")
	l, begun := newLedger(), time.Now()
	l.Command, l.Revision = "go test ./cmd/eldest/lab/sim "+strings.Join(os.Args[1:], " "), cmp.Or(*ofRevision, revision.Here())
	if b, err := os.ReadFile(path); err == nil {
		var before ledger
		require.NoError(t, json.Unmarshal(b, &before), "the summary of the run so far")
		l.Begun, begun = before.Begun, begun.Add(-time.Duration(before.WallSeconds*float64(time.Second)))
	}
	save := func() {
		l.WallSeconds = time.Since(begun).Seconds()
		b, err := json.MarshalIndent(l, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".new", append(b, '\n'), 0o600)) // written completely or not at all
		require.NoError(t, os.Rename(path+".new", path))
	}
	done := func(j job) bool {
		save()
		fmt.Printf("%s %s: %d scenarios, %d tenures, %.3f virtual years, violations %v, broken %d\n",
			l.Updated.Format("15:04:05"), j, l.Total.Scenarios, l.Total.Tenures, l.Total.Years, l.Total.Violations, len(l.Broken))
		return t.Context().Err() == nil
	}
	short := func() (tenures, years bool) { // only our own API must have so many
		return impl.Name() == contender.Eldest && l.Total.Tenures < *leastTenures, impl.Name() == contender.Eldest && l.Total.Years < *leastYears
	}
	counts := map[style]int{}
	for from, more := map[style]int{}, true; more; {
		if len(counts) == 0 {
			for st, n := range recordCounts {
				counts[st] = *n
			}
		}
		l.run(t.Context(), *recordDir, from, counts, done)
		from = maps.Clone(counts)
		tenures, years := short()
		if tenures {
			counts[dense] += 8 * sizes[dense]
		}
		if years {
			counts[quiet] += 4
		}
		more = (tenures || years) && len(l.Broken) == 0
	}
	l.judge(impl)
	if tenures, years := short(); tenures || years {
		l.Complete = false
	}
	save()
	for i, o := range l.Total.Failed {
		if i < 20 || faultless(impl) {
			name := filepath.Join(*recordDir, fmt.Sprintf("failed-%s-%s-%d.txt", impl.Name(), o.Style, o.Seed))
			require.NoError(t, os.WriteFile(name, []byte(o.Report), 0o600))
		}
	}
	report(t, l.Total, time.Since(begun))
	require.True(t, l.Complete, "%v %v", l.Invalid, l.Broken)
	if faultless(impl) {
		require.Empty(t, l.Total.Violations)
	}
}

func report(t *testing.T, s *sum, took time.Duration) {
	t.Logf("%d scenarios, %d tenures, %.1f virtual hours in %v, %.1f ms each; without a fault: %d",
		s.Scenarios, s.Tenures, s.Years*year.Hours(), took.Round(time.Millisecond), 1000*s.Seconds/float64(max(1, s.Scenarios)), s.Mild)
	for _, name := range slices.Sorted(maps.Keys(s.Struck)) {
		t.Logf("%9d %s", s.Struck[name], name)
	}
	t.Logf("violations: %v", s.Violations)
}
