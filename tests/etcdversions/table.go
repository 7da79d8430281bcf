package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row is the results of one version.
type row struct {
	version string // the full one
	results []result
}

// table is the results of a run, as Markdown.
type table struct {
	suites []suite
	rows   []row
}

// String is the result in a line of the output and in a cell of the table.
func (r result) String() string { return r.suite + ": " + r.cell() }

func (r result) cell() string {
	switch {
	case !r.passed:
		return "FAILED"
	case r.took == 0:
		return "left out"
	case len(r.left) > 0:
		return fmt.Sprintf("passed, %d left out (%d s)", len(r.left), int(r.took.Round(time.Second).Seconds()))
	default:
		return fmt.Sprintf("passed (%d s)", int(r.took.Round(time.Second).Seconds()))
	}
}

func (t table) failed() bool {
	for _, row := range t.rows {
		for _, r := range row.results {
			if !r.passed {
				return true
			}
		}
	}
	return false
}

// write writes the table, and the reason of all that was left out.
func (t table) write(out io.Writer) {
	heads := []string{"etcd"}
	for _, s := range t.suites {
		heads = append(heads, s.name)
	}
	fmt.Fprintf(out, "\n| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, row := range t.rows {
		cells := []string{row.version}
		for _, r := range row.results {
			cells = append(cells, r.cell())
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(out)
	for _, row := range t.rows {
		for _, r := range row.results {
			for _, e := range r.left {
				fmt.Fprintln(out, e)
			}
		}
	}
}

// String is the exclusion as a line.
func (e exclusion) String() string {
	what := e.suite
	if e.test != "" {
		what += " " + e.test
	}
	return fmt.Sprintf("left out with %s: %s: %s", e.version, what, e.reason)
}

// show lists what a run would do.
func show(out io.Writer, mine []server, these []suite) {
	for _, s := range mine {
		from := "the module proxy, " + s.release
		if s.release == "" {
			from = "Debian's package etcd-server"
		}
		fmt.Fprintf(out, "etcd %s: %s\n", s.name, from)
	}
	for _, s := range these {
		fmt.Fprintf(out, "suite %s\n", s.name)
	}
	for _, e := range exclusions {
		fmt.Fprintln(out, e)
	}
}
