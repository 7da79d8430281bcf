package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// show lists mutants.
func show(out io.Writer, all []*mutant) error {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range all {
		fmt.Fprintf(columns, "%s\t%s\t%s %s\t%s\n", m.Name, m.Guards, m.Package, m.Test, m.TakesOut)
	}
	return columns.Flush()
}

// line writes one result.
func line(out io.Writer, r result) {
	fmt.Fprintf(out, "%-14s %5.1f s  %s (%s %s)", r.verdict, r.took.Seconds(), r.Name, r.Package, r.Test)
	if r.why != "" {
		fmt.Fprintf(out, ": %s", r.why)
	}
	fmt.Fprintln(out)
}

func count(mutants int) string {
	if mutants == 1 {
		return "1 mutant"
	}
	return fmt.Sprintf("%d mutants", mutants)
}

// sum writes the totals of all results, and returns an error unless all were killed.
func sum(out io.Writer, results []result) error {
	counts := map[verdict]int{}
	for _, r := range results {
		counts[r.verdict]++
	}
	fmt.Fprintf(out, "%s:", count(len(results)))
	for _, v := range []verdict{killed, survived, otherwise, stale, unbuilt, timedOut, absent, unhealthy, broken} {
		if n := counts[v]; n > 0 {
			fmt.Fprintf(out, " %d %s,", n, v)
		}
	}
	fmt.Fprintln(out, " in all")
	if counts[killed] != len(results) {
		return fmt.Errorf("%w: %d of %d", errAlive, len(results)-counts[killed], len(results))
	}
	return nil
}
