package figures

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Table writes one run for people: what was measured under which circumstances, the
// figures by group, and what went wrong.
func Table(w io.Writer, run *Run, style story.Style) error {
	head := run.Scenario
	if run.Summary != "" {
		head += ": " + run.Summary
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n\n%s\n", style.Paint(story.Bold, head), run.Circumstances(), figures(run, style))
	if err != nil {
		return err
	}
	if remarks := run.Remarks(); len(remarks) > 0 {
		if _, err := fmt.Fprintf(w, "\n%s\n", strings.Join(remarks, "\n")); err != nil {
			return err
		}
	}
	wrong := run.Complaints()
	if run.Incomplete != "" {
		wrong = append(wrong, "incomplete: "+plain.Line(run.Incomplete))
	}
	if words := Glossary(run.Terms(), ""); words != "" {
		if len(wrong) > 0 {
			words += "\n"
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", words); err != nil {
			return err
		}
	}
	for _, line := range wrong {
		if _, err := fmt.Fprintln(w, style.Paint(story.Red, line)); err != nil {
			return err
		}
	}
	return nil
}

// Circumstances is the set-up in one line.
func (r *Run) Circumstances() string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Etcd != "", "etcd %s", r.Etcd)
	add(r.Members > 0, "%s", story.Count(r.Members, "member"))
	add(r.Setup.Storage != "", "%s", r.Setup.Storage)
	add(r.Setup.Load > 0, "load %d/s", r.Setup.Load)
	add(r.Setup.Processes > 0, "%s", story.Count(r.Setup.Processes, "worker"))
	add(true, "%s %s/%s", r.Go, r.Setup.OS, r.Setup.Arch)
	add(true, "%s", story.Count(r.Setup.CPUs, "CPU"))
	add(true, "took %v", (time.Duration(r.Seconds*1000) * time.Millisecond).Round(100*time.Millisecond))
	return strings.Join(parts, " · ")
}

// figures is the table itself.
func figures(run *Run, style story.Style) string {
	base, floor := run.Comparison()
	t := table.NewWriter()
	t.SetStyle(spaced)
	groups := run.Groups()
	bounded := run.Bounded()
	header := table.Row{"", "rounds", "min", "p50", "p90", "p99", "max", "mean", "errors"}
	if base != "" {
		header = append(header, "vs "+base)
	}
	if floor != "" {
		header = append(header, "vs "+floor)
	}
	if bounded {
		header = append(header, "vs bound")
	}
	t.AppendHeader(header)
	columns := []table.ColumnConfig{{Number: 1, Align: text.AlignLeft}}
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for i, g := range groups {
		if i > 0 {
			t.AppendRow(table.Row{" "})
		}
		scale := g.Scale()
		title := g.Title()
		if scale.Unit != "" {
			title += " (" + scale.Unit + ")"
		}
		t.AppendRow(table.Row{style.Paint(story.Bold, title)})
		for _, x := range g.Results {
			row := append(table.Row{"  " + x.Contender}, cells(&g, x, style)...)
			for _, other := range []string{base, floor} {
				if other != "" {
					row = append(row, ShownRatio(Ratio(x, g.Of(other))))
				}
			}
			if bounded {
				row = append(row, ShownRatio(g.AgainstBound(x)))
			}
			t.AppendRow(row)
		}
		if g.Bound > 0 {
			t.AppendRow(table.Row{"  (bound)", "", "", scale.Show(g.Bound)})
		}
	}
	t.SuppressTrailingSpaces()
	return t.Render()
}

// spaced has no lines: space tells columns apart.
var spaced = func() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Format.Header = text.FormatDefault
	return s
}()

// cells are the figures of a result.
func cells(g *Group, x *Result, style story.Style) table.Row {
	errors := strconv.Itoa(x.Errors)
	if x.Errors > 0 {
		errors = style.Paint(story.Red, errors)
	}
	c := g.Cells(x)
	return table.Row{x.Rounds, c.Min, c.P50, c.P90, c.P99, c.Max, c.Mean, errors}
}

// Complaints are a line for each result with errors.
func (r *Run) Complaints() []string {
	var lines []string
	for _, g := range r.Groups() {
		for _, x := range g.Results {
			if x.Errors > 0 {
				lines = append(lines, fmt.Sprintf("%s, %s: %d of %d rounds failed, the first with: %s",
					g.Title(), x.Contender, x.Errors, x.Rounds, plain.Line(x.FirstError)))
			}
		}
	}
	return lines
}

// Remarks are the run's notes, and what became of the load that was asked for.
func (r *Run) Remarks() []string {
	lines := slices.Clone(r.Notes)
	for _, regime := range slices.Sorted(maps.Keys(r.Setup.Written)) {
		w := r.Setup.Written[regime]
		line := fmt.Sprintf("%s: %.0f background writes a second, of %d asked for", regime, w.PerSecond, r.Setup.Load)
		if w.Failed > 0 {
			line += fmt.Sprintf("; %d failed", w.Failed)
		}
		lines = append(lines, line)
	}
	return lines
}
