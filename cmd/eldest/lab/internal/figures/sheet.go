package figures

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// sheet is a report as it is shown, as text and on a page.
type sheet struct {
	*bench.Report
	Facts []fact
	Terms []bench.Term
	// Header has the names of the columns of the tables; each table is one group.
	Header []string
	Tables []groupTable
	// Remarks are about what was measured, Complaints about what was not.
	Remarks, Complaints []string
}

// fact is one part of the set-up.
type fact struct{ Name, Value string }

type groupTable struct {
	Title string
	Rows  []row
}

type row struct {
	Cells  []string
	Failed bool // some of its rounds failed
}

// verdicts are the metrics whose samples are 0 or 1: no or yes.
var verdicts = map[string]bool{"two-leaders": true}

func newSheet(r *bench.Report) sheet {
	s := sheet{Report: r, Facts: facts(r), Terms: terms(r), Remarks: slices.Clone(r.Notes)}
	for _, regime := range slices.Sorted(maps.Keys(r.Setup.Written)) {
		w := r.Setup.Written[regime]
		s.Remarks = append(s.Remarks, fmt.Sprintf("%s: %.0f background writes a second, of %d requested; %d failed", regime, w.PerSecond, r.Setup.Load, w.Failed))
	}
	all := groups(r)
	base, floor := comparison(r)
	bounded := slices.ContainsFunc(all, func(g group) bool { return g.bound > 0 })
	s.Header = strings.Fields("contender rounds min p50 p90 p99 max mean errors")
	for _, to := range []string{base, floor} {
		if to != "" {
			s.Header = append(s.Header, "vs "+to)
		}
	}
	if bounded {
		s.Header = append(s.Header, "vs bound")
	}
	for _, g := range all {
		t := groupTable{Title: g.title()}
		scale := g.scale()
		if scale.unit != "" {
			t.Title += " (" + scale.unit + ")"
		}
		for _, x := range g.results {
			cells := append(append([]string{x.Contender, strconv.Itoa(x.Rounds)}, g.cells(x)...), strconv.Itoa(x.Errors))
			for _, to := range []string{base, floor} {
				if to != "" {
					cells = append(cells, showRatio(ratio(x, g.of(to))))
				}
			}
			if bounded {
				cells = append(cells, showRatio(typical(x)/float64(max(1, g.bound)), g.bound > 0 && len(x.Samples) > 0))
			}
			t.Rows = append(t.Rows, row{Cells: cells, Failed: x.Errors > 0})
			if x.Errors > 0 {
				s.Complaints = append(s.Complaints, fmt.Sprintf("%s, %s: %d of %d rounds failed, the first with: %s",
					g.title(), x.Contender, x.Errors, x.Rounds, plain.Line(x.FirstError)))
			}
		}
		if g.bound > 0 {
			t.Rows = append(t.Rows, row{Cells: []string{"(bound)", "", "", scale.show(float64(g.bound))}})
		}
		s.Tables = append(s.Tables, t)
	}
	if r.Incomplete != "" {
		s.Complaints = append(s.Complaints, "incomplete: "+plain.Line(r.Incomplete))
	}
	return s
}

// cells returns the figures of a result from min to mean.
func (g *group) cells(x *bench.Result) []string {
	scale := g.scale()
	switch {
	case len(x.Samples) == 0:
		return []string{"-", "-", "-", "-", "-", "-"}
	case verdicts[g.metric]:
		// Percentiles of zeros and ones are not useful.
		return []string{"", "", "", "", "", fmt.Sprintf("%.0f of %d", mean(x)*float64(len(x.Samples)), len(x.Samples))}
	}
	var cells []string
	for _, v := range []int64{x.Min, x.P50, x.P90, x.P99, x.Max} {
		cells = append(cells, scale.show(float64(v)))
	}
	return append(cells, scale.show(mean(x)))
}

// facts returns the set-up.
func facts(r *bench.Report) (all []fact) {
	add := func(ok bool, name, value string) {
		if ok && value != "" {
			all = append(all, fact{name, value})
		}
	}
	add(true, "etcd", r.Etcd)
	add(r.Members > 0, "members", strconv.Itoa(r.Members))
	add(true, "storage", r.Setup.Storage)
	add(r.Setup.Load > 0, "load", fmt.Sprintf("%d/s", r.Setup.Load))
	add(r.Setup.Processes > 0, "workers", strconv.Itoa(r.Setup.Processes))
	add(true, "warm-up", story.Count(r.Setup.Warmup, "turn"))
	add(true, "system", strings.Trim(r.Setup.OS+"/"+r.Setup.Arch, "/"))
	add(true, "CPUs", strings.TrimSpace(strconv.Itoa(r.Setup.CPUs)+" "+r.Setup.CPU))
	add(true, "Go", r.Go)
	add(true, "eldest", r.Setup.Eldest)
	add(!r.Time.IsZero(), "date", r.Time.UTC().Format("2006-01-02 15:04 UTC"))
	add(true, "took", time.Duration(r.Seconds*float64(time.Second)).Round(100*time.Millisecond).String())
	return all
}

// terms returns the terms of the report that its scenario explains, if they occur: the contenders
// first, then the regimes and the metrics.
func terms(r *bench.Report) (used []bench.Term) {
	s, err := bench.Named(r.Scenario)
	if err != nil {
		return nil // a scenario of another version
	}
	for _, t := range slices.Concat(s.Contenders, s.Regimes, s.Metrics) {
		if slices.ContainsFunc(r.Results, func(x bench.Result) bool { return slices.Contains([]string{x.Contender, x.Regime, x.Metric}, t.Name) }) && !slices.Contains(used, t) {
			used = append(used, t)
		}
	}
	return used
}
