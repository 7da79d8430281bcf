package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchsite"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// enough is how much memory the data of all systems may need: ZooKeeper and other versions of etcd allocate
// their logs in segments of 64 MB.
const enough = 6 << 30

// run is a run that goes on.
type run struct {
	options Options
	spawner *offspring.Spawner
	dir     string
	results results

	elections, begun atomic.Int64

	mu      sync.Mutex
	systems map[string]SystemReport // of those that have started
	skipped []Skipped
}

// Run measures, and blocks until all that it has started has ended. When ctx ends, the report has what was
// measured until then, and says in Incomplete that the run was interrupted. The report is nil only if the
// error is not.
func Run(ctx context.Context, o Options) (*Report, error) {
	o, err := o.complete()
	if err == nil && len(o.Systems) == 0 {
		err = fmt.Errorf("%w: no systems", ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		removeAbandoned(benchsite.InMemory) // first: it takes memory
	}
	storage, err := benchsite.Settle(o.Dir, enough)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	base := storage.Dir
	removeAbandoned(base)
	dir, lock, err := newDir(base)
	if err != nil {
		return nil, err
	}
	r := &run{options: o, spawner: offspring.NewSpawner(), dir: dir, systems: map[string]SystemReport{}}
	began := time.Now()
	var failed []error
	for _, setting := range o.Settings {
		if ctx.Err() == nil {
			failed = append(failed, r.measure(ctx, setting))
		}
	}
	r.spawner.Close()
	failed = append(failed, removeDir(dir), lock.Close())

	report := r.report(began, storage.String())
	if ctx.Err() != nil {
		report.Incomplete = "interrupted"
	}
	return report, errors.Join(failed...)
}

// measure starts all systems with one set of settings, and measures them.
func (r *run) measure(ctx context.Context, setting string) error {
	sites := make([]*site, len(r.options.Systems))
	inParallel(len(sites), func(i int) {
		system := r.options.Systems[i]
		site, err := r.start(ctx, system, setting)
		if err != nil {
			r.absent(ctx, system, setting, err)
			return
		}
		sites[i] = site
	})
	sites = slices.DeleteFunc(sites, func(s *site) bool { return s == nil })
	for _, group := range groups {
		r.measureGroup(ctx, setting, sites, group)
	}
	failed := make([]error, len(sites))
	inParallel(len(sites), func(i int) {
		if err := sites[i].close(); err != nil {
			failed[i] = fmt.Errorf("closing %s: %w", sites[i].system.Name, err)
		}
	})
	return errors.Join(failed...)
}

// group has scenarios whose turns belong to the same rounds.
type group struct {
	scenarios []string
	// alone measures a turn that overlaps with no other; nil means together. A turn that only counts does not
	// depend on what else runs.
	alone  func(t *turn, ctx context.Context) error
	counts bool
}

var groups = []group{
	{scenarios: []string{Handover}},
	{scenarios: []string{Crash, Machine, Stop, Cut}},
	{scenarios: []string{Fanout}, alone: (*turn).fanout},
	{scenarios: []string{Join}, alone: (*turn).join},
	{scenarios: []string{Memory}, alone: (*turn).memory},
	{scenarios: []string{Rest}, alone: (*turn).rest, counts: true},
	{scenarios: []string{StoreLeader}, alone: (*turn).storeLeader},
}

// measureGroup measures the rounds of a group of scenarios.
func (r *run) measureGroup(ctx context.Context, setting string, sites []*site, group group) {
	most := 0
	for _, name := range group.scenarios {
		if s, _ := find(name); r.options.wants(name) {
			most = max(most, r.options.rounds(s, setting))
		}
	}
	for round := range most {
		var turns []*turn
		order := rand.Perm(len(sites)) // so that what one system leaves behind meets another one each time
		for _, name := range group.scenarios {
			s, _ := find(name)
			for _, i := range order {
				if r.options.wants(name) && round < r.options.rounds(s, setting) && r.has(sites[i].system, setting, s) {
					turns = append(turns, r.newTurn(sites[i], s))
				}
			}
		}
		if ctx.Err() != nil {
			return
		}
		if group.alone == nil {
			r.together(ctx, turns)
			continue
		}
		var all sync.WaitGroup
		for _, t := range turns {
			all.Go(func() { t.alone(ctx, group.alone) })
			if !group.counts {
				all.Wait()
			}
		}
		all.Wait()
	}
}

// has reports whether a system has a scenario, and adds the lack to the report if it has not.
func (r *run) has(system peer.System, setting string, s Scenario) bool {
	if reason := system.Lacks[s.Name]; reason != "" {
		r.results.lack(Lack{System: system.Name, Scenario: s.Name, Reason: reason})
	}
	return !r.results.lacking(system.Name, setting, s.Name)
}

// point is the point of a metric.
func (r *run) point(system, setting string, s Scenario, metric string) point {
	p := point{s.Name, metric, system, setting, 0}
	if s.Sized {
		p.n = r.options.Size
	}
	return p
}

// absent records that a system could not be started: it is skipped if it is not installed. Otherwise all
// that is wanted of it has failed.
func (r *run) absent(ctx context.Context, system peer.System, setting string, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, peer.ErrMissing):
		r.skip(Skipped{System: system.Name, Reason: shorten(err).Error()})
	default:
		err = fmt.Errorf("the servers did not start: %w", shorten(err))
		for _, s := range Scenarios {
			if !r.options.wants(s.Name) || !r.has(system, setting, s) {
				continue
			}
			for _, m := range s.Metrics {
				r.results.fail(r.point(system.Name, setting, s, m.Name), m.Unit, err)
			}
		}
	}
}

// skip adds a system that is not installed to the report.
func (r *run) skip(s Skipped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.skipped, s) {
		return // with the other settings, too
	}
	r.skipped = append(r.skipped, s)
	if r.options.Skip != nil {
		r.options.Skip(s)
	}
}

// progress reports a turn that begins.
func (r *run) progress(t *turn) {
	done := int(r.begun.Add(1)) - 1
	if r.options.Progress != nil {
		r.options.Progress(bench.Progress{
			Contender: t.site.system.Name, Regime: t.scenario.Name + " " + t.site.setting, Done: done, Total: r.options.total(),
		})
	}
}

// report makes the report of a run that has ended.
func (r *run) report(began time.Time, storage string) *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := &Report{
		Time: began, Go: runtime.Version(), Seconds: time.Since(began).Seconds(), Skipped: r.skipped,
		Setup: bench.Setup{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Storage: storage},
	}
	var names []string
	for _, s := range r.options.Systems {
		names = append(names, s.Name)
		if described, ok := r.systems[s.Name]; ok {
			report.Systems = append(report.Systems, described)
		}
	}
	r.results.into(report, r.options.Settings, names)
	return report
}

// inParallel calls do for 0 to n-1, several at a time, and waits for all.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			do(i)
			<-free
		})
	}
	wg.Wait()
}
