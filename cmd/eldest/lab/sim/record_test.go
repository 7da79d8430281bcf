package sim

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
)

// The run on record. What is done is kept in the directory, a file for each range of
// seeds, so that a run that was stopped goes on where it was when the same command is
// given again.
var (
	recordDir    = flag.String("sim.record", "", "the directory of a run on record: seeds of all styles, until there are as many tenures and as much time as wanted")
	recordCounts = map[style]*int{
		ordinary: flag.Int("sim.ordinary", 10_000, "of a run on record: how many ordinary scenarios at least"),
		dense:    flag.Int("sim.dense", 600, "of a run on record: how many dense scenarios at least"),
		quiet:    flag.Int("sim.quiet", 50, "of a run on record: how many quiet scenarios at least"),
	}
	leastTenures = flag.Int("sim.tenures", 1_000_000, "of a run on record: how many tenures it must have")
	ofRevision   = flag.String("sim.revision", "", "of a run on record: the revision that the test was built from; default: what is checked out")
	leastYears   = flag.Float64("sim.years", 1, "of a run on record: how many virtual years it must have")
)

// sizes are how many seeds of a style a process runs before the next one does.
var sizes = map[style]int{ordinary: 50, dense: 4, quiet: 1}

// ledger is the summary of a run on record.
type ledger struct {
	Command     string           `json:"command"`
	Revision    string           `json:"revision"`
	Election    string           `json:"election"`
	Begun       time.Time        `json:"begun"`
	Updated     time.Time        `json:"updated"`
	WallSeconds float64          `json:"wallSeconds"` // of all processes of the run, one after another
	Processes   int              `json:"processes"`
	Complete    bool             `json:"complete"`
	Invalid     []string         `json:"invalid,omitempty"`
	Broken      []string         `json:"broken,omitempty"` // ranges whose process did not come to its end
	Seeds       map[style]string `json:"seeds"`
	Total       *sum             `json:"total"`
	Styles      map[style]*sum   `json:"styles"`
}

// record does the run on record.
func record(t *testing.T, impl contender.Contender) {
	require.NoError(t, os.MkdirAll(*recordDir, 0o755))
	lock, err := os.OpenFile(filepath.Join(*recordDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer func() { _ = lock.Close() }()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), "another run has the directory")
	path := filepath.Join(*recordDir, "summary.json")
	l := &ledger{Begun: time.Now()}
	if b, err := os.ReadFile(path); err == nil {
		require.NoError(t, json.Unmarshal(b, l), "the summary of the run so far")
	}
	l.Command, l.Revision, l.Election, l.Processes = "go test ./cmd/eldest/lab/sim "+strings.Join(os.Args[1:], " "), cmp.Or(*ofRevision, revision.Here()), impl.Name(), *procs
	l.Styles, l.Broken, l.Invalid, l.Complete = map[style]*sum{}, nil, nil, false
	before, resumed := l.WallSeconds, time.Now()
	counts := map[style]int{}
	for st, n := range recordCounts {
		l.Styles[st], counts[st] = newSum(), *n
	}
	save := func() {
		l.Total = merged(l.Styles)
		l.Updated, l.WallSeconds = time.Now(), before+time.Since(resumed).Seconds()
		l.Seeds = map[style]string{}
		for st, n := range counts {
			l.Seeds[st] = fmt.Sprintf("%d to %d", *first, *first+n-1)
		}
		require.NoError(t, replace(path, l))
	}
	done := func(j job, all []outcome, err error) bool {
		if err != nil {
			t.Error(err)
			l.Broken = append(l.Broken, fmt.Sprintf("%s: %v", j, err))
		}
		for _, o := range all {
			l.Styles[j.style].add(o)
			if o.Report != "" {
				name := filepath.Join(*recordDir, fmt.Sprintf("failed-%s-%s-%d.txt", impl.Name(), o.Style, o.Seed))
				if len(l.Styles[j.style].Failed) <= 20 || faultless(impl) {
					require.NoError(t, os.WriteFile(name, []byte(o.Report), 0o600))
				}
			}
		}
		save()
		fmt.Printf("%s %s: %d scenarios, %d tenures, %.3f virtual years, violations %v, broken %d\n",
			l.Updated.Format("15:04:05"), j, l.Total.Scenarios, l.Total.Tenures, l.Total.Years, l.Total.Violations, len(l.Broken))
		return t.Context().Err() == nil
	}
	share(t.Context(), *recordDir, mixed(impl.Name(), nil, counts), done)
	for impl.Name() == contender.Eldest && len(l.Broken) == 0 { // until there is enough
		last := map[style]int{ordinary: counts[ordinary], dense: counts[dense], quiet: counts[quiet]}
		if l.Total.Tenures < *leastTenures {
			counts[dense] += 8 * sizes[dense]
		}
		if l.Total.Years < *leastYears {
			counts[quiet] += 4
		}
		more := mixed(impl.Name(), last, counts)
		if len(more) == 0 {
			break
		}
		share(t.Context(), *recordDir, more, done)
	}
	l.judge(impl)
	save()
	report(t, l.Total, time.Duration(l.WallSeconds*float64(time.Second)))
	t.Logf("violations: %v", l.Total.Violations)
	require.True(t, l.Complete, "%v %v", l.Invalid, l.Broken)
	if faultless(impl) {
		require.Empty(t, l.Total.Violations)
	}
}

// judge says whether the run is one.
func (l *ledger) judge(impl contender.Contender) {
	for _, name := range l.Total.never(impl) {
		l.Invalid = append(l.Invalid, "never in any scenario: "+name)
	}
	for _, o := range l.Total.Failed {
		if o.Invalid != "" {
			l.Invalid = append(l.Invalid, fmt.Sprintf("%s %d: %s", o.Style, o.Seed, o.Invalid))
		}
	}
	if impl.Name() == contender.Eldest && (l.Total.Tenures < *leastTenures || l.Total.Years < *leastYears) {
		l.Invalid = append(l.Invalid, "too few tenures, or too little time")
	}
	l.Complete = len(l.Invalid) == 0 && len(l.Broken) == 0
}

// mixed returns the jobs for seeds from and to, by style, so that all styles come
// forward alike.
func mixed(impl string, from, to map[style]int) []job {
	type placed struct {
		job
		at float64
	}
	var all []placed
	for st, n := range to {
		jobs := split(impl, st, *first+from[st], *first+n, sizes[st])
		for i, j := range jobs {
			all = append(all, placed{j, (float64(i) + 0.5) / float64(len(jobs))})
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.style, b.style))
	})
	var jobs []job
	for _, p := range all {
		jobs = append(jobs, p.job)
	}
	return jobs
}

// replace writes v to a file, all of it or nothing.
func replace(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
