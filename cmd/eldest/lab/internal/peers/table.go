package peers

import (
	"fmt"
	"io"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Table writes a report as text, in the form of all benchmarks: a table for each metric with each of the settings, and
// what could not be measured.
func Table(w io.Writer, r *Report, style story.Style) error {
	shown := &bench.Report{
		Scenario: "peers", Summary: "leader elections of several systems", Time: r.Time, Go: r.Go, Setup: r.Setup,
		Seconds: r.Seconds, Incomplete: r.Incomplete,
	}
	note := func(format string, args ...any) {
		shown.Notes = append(shown.Notes, plain.Line(fmt.Sprintf(format, args...))) // errors may have any text
	}
	for _, s := range r.Systems {
		note("%s: %s, %d nodes, client %s", s.Name, s.Version, s.Nodes, s.Client)
	}
	for _, x := range r.Results {
		its := x.Result
		its.Metric = x.Scenario + "/" + x.Metric
		shown.Results = append(shown.Results, its)
		if x.None > 0 {
			note("%s (%s), %s: %d of %d rounds had none within %v", x.Contender, x.Regime, its.Metric, x.None, x.Rounds+x.None, x.Limit)
		}
	}
	for _, l := range r.Lacks {
		of := l.System
		if l.Setting != "" {
			of += " (" + l.Setting + ")"
		}
		note("%s has no %s: %s", of, l.Scenario, l.Reason)
	}
	for _, u := range r.Unprovoked {
		note("%s (%s): leaders that lost their leadership without a fault: %d", u.System, u.Setting, u.Count)
	}
	for _, s := range r.Skipped {
		note("skipped: %s: %s", s.System, s.Reason)
	}
	return figures.Table(w, shown, style)
}
