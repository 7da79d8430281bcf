package peers

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// Table writes a report as text: a table for each metric, and what could not be measured.
func Table(w io.Writer, r *Report) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s/%s, %d CPUs, %s, %s, took %v\n", r.Setup.OS, r.Setup.Arch, r.Setup.CPUs, r.Setup.Storage, r.Go,
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	for _, s := range r.Systems {
		fmt.Fprintf(out, "  %s: %s, %d nodes, client %s\n", s.Name, s.Version, s.Nodes, s.Client)
	}
	if r.Incomplete != "" {
		fmt.Fprintf(out, "INCOMPLETE: %s\n", r.Incomplete)
	}
	for _, s := range Scenarios {
		for _, m := range s.Metrics {
			if err := section(out, r, s, m); err != nil {
				return err
			}
		}
	}
	for _, l := range r.Lacks {
		setting := ""
		if l.Setting != "" {
			setting = " (" + l.Setting + ")"
		}
		fmt.Fprintf(out, "\n%s%s has no %s: %s", l.System, setting, l.Scenario, l.Reason)
	}
	for _, u := range r.Unprovoked {
		fmt.Fprintf(out, "\n%s (%s): leaders that lost their leadership without a fault: %d", u.System, u.Setting, u.Count)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(out, "\nskipped: %s: %s", s.System, s.Reason)
	}
	for _, x := range r.Results {
		if x.Errors > 0 {
			fmt.Fprintf(out, "\n%s (%s), %s/%s: %d of %d rounds failed: %s", x.Contender, x.Regime, x.Scenario, x.Metric, x.Errors, x.Rounds+x.None, x.FirstError)
		}
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, line := range lines {
		if !plain.Fit(line) { // errors may have any text
			lines[i] = plain.Line(line)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// section writes the table of a metric.
func section(out io.Writer, r *Report, s Scenario, m Metric) error {
	lines := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	empty := true
	for i := range r.Results {
		x := &r.Results[i]
		if x.Scenario != s.Name || x.Metric != m.Name {
			continue
		}
		if empty {
			empty = false
			of := ""
			if s.Sized {
				of = fmt.Sprintf(", n = %d", x.N)
			}
			fmt.Fprintf(out, "\n%s/%s%s: %s\n", s.Name, m.Name, of, m.Text)
			fmt.Fprintln(lines, "\t\trounds\tmin\tp50\tmax\tnone\terrors\t")
		}
		figure := func(v int64) string {
			if len(x.Samples) == 0 {
				return "-"
			}
			return Figure(x.Unit, v)
		}
		none := ""
		if x.None > 0 {
			none = fmt.Sprintf("%d in %v", x.None, x.Limit)
		}
		errors := ""
		if x.Errors > 0 {
			errors = fmt.Sprint(x.Errors)
		}
		fmt.Fprintf(lines, "  %s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", x.Contender, x.Regime, x.Rounds+x.None, figure(x.Min), figure(x.P50), figure(x.Max), none, errors)
	}
	return lines.Flush()
}

// Figure formats a value in its unit.
func Figure(unit string, v int64) string {
	switch d := time.Duration(v); {
	case unit == bench.Bytes:
		return fmt.Sprintf("%.1f kB", float64(v)/1000)
	case unit != bench.Nanoseconds:
		return fmt.Sprint(v)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}
