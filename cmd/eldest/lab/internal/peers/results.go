package peers

import (
	"cmp"
	"slices"
	"sync"
)

// results collects what is measured. Its methods may be called from many goroutines.
type results struct {
	mu    sync.Mutex
	of    map[point]*Result
	lacks []Lack
	lost  []Unprovoked
}

// point is one metric of one system with one set of settings.
type point struct {
	scenario, metric, system, setting string
	n                                 int
}

// record changes the result of a point.
func (r *results) record(p point, unit string, change func(*Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[point]*Result{}
	}
	of := r.of[p]
	if of == nil {
		of = &Result{Scenario: p.scenario}
		of.Contender, of.Regime, of.N, of.Metric, of.Unit = p.system, p.setting, p.n, p.metric, unit
		r.of[p] = of
	}
	change(of)
}

// fail counts a round that has failed.
func (r *results) fail(p point, unit string, err error) {
	r.record(p, unit, func(of *Result) {
		of.Errors++
		of.FirstError = cmp.Or(of.FirstError, shorten(err).Error())
	})
}

// lack adds a lack, once.
func (r *results) lack(l Lack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.lacks, l) {
		r.lacks = append(r.lacks, l)
	}
}

// unprovoked counts a leader that lost its leadership without a fault.
func (r *results) unprovoked(system, setting string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.lost {
		if r.lost[i].System == system && r.lost[i].Setting == setting {
			r.lost[i].Count++
			return
		}
	}
	r.lost = append(r.lost, Unprovoked{system, setting, 1})
}

// lacking reports whether a system lacks a scenario.
func (r *results) lacking(system, setting, scenario string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lacks, func(l Lack) bool {
		return l.System == system && l.Scenario == scenario && (l.Setting == "" || l.Setting == setting)
	})
}

// into puts all results into a report, in the order of scenarios, metrics, settings and systems.
func (r *results) into(report *Report, settings, systems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var points []point
	for p := range r.of {
		points = append(points, p)
	}
	rank := func(p point) []int {
		i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == p.scenario })
		j := slices.IndexFunc(Scenarios[i].Metrics, func(m Metric) bool { return m.Name == p.metric })
		return []int{i, j, slices.Index(settings, p.setting), slices.Index(systems, p.system)}
	}
	slices.SortFunc(points, func(a, b point) int { return slices.Compare(rank(a), rank(b)) })
	report.Results = []Result{}
	for _, p := range points {
		r.of[p].Summarize()
		report.Results = append(report.Results, *r.of[p])
	}
	place := func(system string) int { return slices.Index(systems, system) }
	report.Lacks, report.Unprovoked = r.lacks, r.lost
	slices.SortStableFunc(report.Lacks, func(a, b Lack) int { return cmp.Compare(place(a.System), place(b.System)) })
	slices.SortStableFunc(report.Unprovoked, func(a, b Unprovoked) int { return cmp.Compare(place(a.System), place(b.System)) })
}
