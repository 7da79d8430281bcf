package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run leaves behind: without revision and date its results say nothing
// about the code that somebody has before him.
type report struct {
	Revision string `json:"revision"`
	// Changed is how many files differ from the revision, or are not in it.
	Changed int       `json:"changed_files"`
	Date    time.Time `json:"date"`
	Go      string    `json:"go"`
	// Seconds is how long the run took, building counted.
	Seconds float64         `json:"seconds"`
	Counts  map[verdict]int `json:"counts"`
	Results []result        `json:"results"`
}

// reportOn begins the report of a run on a revision, or, if at is empty, on the working
// tree.
func reportOn(ctx context.Context, root, at string) (report, error) {
	r := report{Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version()}
	of := at
	if of == "" {
		of = "HEAD"
		changed, err := git(ctx, root, nil, "status", "--porcelain", "--untracked-files=all")
		if err != nil {
			return r, err
		}
		r.Changed = strings.Count(string(changed), "\n")
	}
	revision, err := git(ctx, root, nil, "rev-parse", of+"^{commit}")
	r.Revision = strings.TrimSpace(string(revision))
	return r, err
}

// end writes the report of a run that has come to its end.
func (r report) end(out io.Writer, results []result) error {
	r.Seconds = time.Since(r.Date).Round(time.Second).Seconds()
	r.Results, r.Counts = results, countsOf(results)
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func countsOf(results []result) map[verdict]int {
	counts := map[verdict]int{}
	for _, r := range results {
		counts[r.Verdict]++
	}
	return counts
}

// show lists mutants.
func show(out io.Writer, all []*mutant, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range all {
		fmt.Fprintf(columns, "%s\t%s\t%s %s\t%s\n", m.Name, m.Guards, m.Package, m.Test, m.TakesOut)
	}
	return columns.Flush()
}

// line tells one result.
func line(out io.Writer, r result) {
	fmt.Fprintf(out, "%-14s %5.1f s  %s (%s %s)", r.Verdict, r.Seconds, r.Name, r.Package, r.Test)
	if r.Why != "" {
		fmt.Fprintf(out, ": %s", r.Why)
	}
	fmt.Fprintln(out)
}

func count(mutants int) string {
	if mutants == 1 {
		return "1 mutant"
	}
	return fmt.Sprintf("%d mutants", mutants)
}

// sum tells what all results add up to, and is an error unless all were killed.
func sum(out io.Writer, results []result, silent bool) error {
	counts := countsOf(results)
	if !silent {
		fmt.Fprintf(out, "%s:", count(len(results)))
		for _, v := range []verdict{killed, survived, otherwise, stale, unbuilt, timedOut, absent, unhealthy, broken} {
			if n := counts[v]; n > 0 {
				fmt.Fprintf(out, " %d %s,", n, v)
			}
		}
		fmt.Fprintln(out, " in all")
	}
	if counts[killed] != len(results) {
		return fmt.Errorf("%w: %d of %d", errAlive, len(results)-counts[killed], len(results))
	}
	return nil
}
