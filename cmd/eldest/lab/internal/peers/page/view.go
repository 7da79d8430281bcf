package page

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// view is a report as both pages show it.
type view struct {
	*peers.Report
	Columns  []column
	Settings []string
	Tables   []table
	Notes    []string
	// InMemory is true if the servers' data is in memory, where to write to the disk costs nothing.
	InMemory bool
	// Compared is false if Eldest was not measured.
	Compared bool
	Deficits []deficit
	// Drawn is false if there is no chart; Undrawn are the systems that are not in it, with the reasons.
	Drawn   bool
	Drawing template.HTML
	Undrawn []string
	Titles  map[string]string
	Facts   []fact
	Figures []metric
}

// fact is one part of the set-up.
type fact struct{ Name, Value string }

// metric has all figures of one metric.
type metric struct {
	Title string
	Rows  []figure
}

// figure is one result.
type figure struct {
	System, Setting, Median, Least, Most, Rounds, None, Errors string
}

func newView(r *peers.Report) (*view, error) {
	v := &view{Report: r, Columns: columns(r), Settings: settings(r), Titles: map[string]string{}, Facts: facts(r), Figures: all(r), InMemory: inMemory(r)}
	for _, name := range systems(r) {
		v.Titles[name] = title(r, name)
	}
	v.Tables, v.Notes = tables(r, v.Columns)
	v.Deficits, v.Compared = deficits(r, v.Columns, v.Tables)
	drawn, err := drawing(r)
	if err != nil && !errors.Is(err, ErrNothing) {
		return nil, err
	}
	v.Drawn, v.Drawing, v.Undrawn = err == nil, drawn, undrawn(r)
	return v, nil
}

// inMemory reports whether the servers' data is in memory.
func inMemory(r *peers.Report) bool { return strings.HasPrefix(r.Setup.Storage, "memory") }

// facts are the set-up.
func facts(r *peers.Report) (all []fact) {
	add := func(ok bool, name, value string) {
		if value = line(value); ok && value != "" {
			all = append(all, fact{name, value})
		}
	}
	add(!r.Time.IsZero(), "date", r.Time.UTC().Format("2 January 2006, 15:04 UTC"))
	add(r.Seconds > 0, "took", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second).String())
	add(true, "operating system", strings.Trim(r.Setup.OS+"/"+r.Setup.Arch, "/"))
	add(r.Setup.CPUs > 0, "processors", fmt.Sprintf("%d %s", r.Setup.CPUs, r.Setup.CPU))
	add(true, "data of the servers", r.Setup.Storage)
	add(true, "Go", r.Go)
	add(true, "eldest", r.Setup.Eldest)
	add(r.Setup.Warmup > 0, "warm-up", story.Count(r.Setup.Warmup, "round")+", not counted")
	add(true, "rounds", rounds(r))
	return all
}

// rounds says how many rounds each scenario had.
func rounds(r *peers.Report) string {
	least, most := map[string]int{}, map[string]int{}
	for _, x := range r.Results {
		n := x.Rounds + x.None
		if l, ok := least[x.Scenario]; !ok || n < l {
			least[x.Scenario] = n
		}
		most[x.Scenario] = max(most[x.Scenario], n)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(most)) {
		n := fmt.Sprint(most[name])
		if least[name] != most[name] {
			n = fmt.Sprintf("%d to %d", least[name], most[name])
		}
		parts = append(parts, name+" "+n)
	}
	return strings.Join(parts, ", ")
}

// all are the figures of every metric, in the order of the report.
func all(r *peers.Report) (out []metric) {
	for _, x := range r.Results {
		its := described(&x)
		at := slices.IndexFunc(out, func(m metric) bool { return m.Title == its })
		if at < 0 {
			at = len(out)
			out = append(out, metric{Title: its})
		}
		f := figure{System: title(r, x.Contender), Setting: x.Regime, Median: "none", Least: "none", Most: "none",
			Rounds: fmt.Sprint(x.Rounds + x.None), None: "0", Errors: fmt.Sprint(x.Errors)}
		if len(x.Samples) > 0 {
			f.Median, f.Least, f.Most = show(float64(x.P50), x.Unit), show(float64(x.Min), x.Unit), show(float64(x.Max), x.Unit)
		} else if x.Errors > 0 {
			f.Median, f.Least, f.Most = "error", "error", "error"
		}
		if x.None > 0 {
			f.None = fmt.Sprint(x.None)
			if x.Limit > 0 {
				f.None += " within " + span(x.Limit)
			}
		}
		out[at].Rows = append(out[at].Rows, f)
	}
	return out
}

// described is the title of a metric.
func described(x *peers.Result) string {
	s := source{x.Scenario, x.Metric}
	its := further[s.String()]
	for _, q := range questions {
		if slices.Contains(q.Sources, s) {
			its, _, _ = strings.Cut(strings.Replace(q.Title, "%N", story.Thousands(x.N), 1), " (")
			if len(q.Sources) > 1 {
				its += ", " + s.Scenario
			}
		}
	}
	if its == "" {
		return s.String()
	}
	return its + " (" + s.String() + ")"
}

// loss is how long a failure is not noticed at most, by a system's settings; 0 if nothing limits it.
func loss(r *peers.Report, system, setting string) time.Duration {
	for _, s := range r.Systems {
		if s.Name == system {
			return s.Settings[setting].Loss
		}
	}
	return 0
}

// Noticed says how long a failure is not noticed at most.
func (v *view) Noticed(s peers.SystemReport, setting string) string {
	if d := s.Settings[setting].Loss; d > 0 {
		return span(d)
	}
	return "nothing limits it"
}
