package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// mostShown is the maximum number of violations, and of reasons why parts are invalid, in the
// table; --json has all.
const mostShown = 20

// listFaults writes a line for each fault, or an array for programs.
func listFaults(w io.Writer, asJSON bool) error {
	type row struct {
		Fault   chaos.Fault `json:"fault"`
		Summary string      `json:"summary"`
	}
	var rows []row
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range chaos.Kinds {
		rows = append(rows, row{k.Fault, k.Summary})
		fmt.Fprintf(tw, "%s\t%s\n", k.Fault, k.Summary)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(rows)
	}
	return tw.Flush()
}

// write writes the report of a run to the file of --json and, unless that is stdout, as tables.
func (f *chaosFlags) write(cmd *cobra.Command, paper *paper, r *chaos.Report) error {
	err := paper.write(func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Version string `json:"version"`
			Command string `json:"command"`
			*chaos.Report
		}{cli.Version(), f.command(r.Seed, f.cfg.Rounds, f.cfg.Duration), r})
	})
	if err != nil || paper.isStdout() {
		return err
	}
	return f.table(cmd.OutOrStdout(), r, styleFor(cmd))
}

// command returns the command line that runs so many rounds with a seed and this run's other flags.
func (f *chaosFlags) command(seed uint64, rounds int, duration time.Duration) string {
	line := fmt.Sprintf("eldest chaos --seed %d", seed)
	if rounds > 0 {
		line += fmt.Sprintf(" --rounds %d", rounds)
	}
	line += f.others
	if duration > 0 {
		line += fmt.Sprintf(" --duration %v", duration)
	}
	return line
}

// table writes the report as text.
func (f *chaosFlags) table(w io.Writer, r *chaos.Report, style story.Style) error {
	fmt.Fprintf(w, "%s: %s, seed %d, %d members, %d participants, TTL %v, %s\n\n",
		r.Contender, played(r), r.Seed, r.Members, r.Participants, r.TTL, clock(time.Duration(r.Seconds*float64(time.Second))))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "fault\tinjected\ttook effect\trounds with violations\t")
	for _, l := range r.Lines {
		if l.Injected == 0 {
			continue // it was not drawn
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t\n", l.Fault, l.Injected, l.TookEffect, l.Violations)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s; guarded writes: %d acknowledged, %d refused, %d unknown; %d reads; %d checks whether a participant is certain to lead;\n"+
		"%d stops of a leader for longer than its lease; %d writes to the store outside etcd, and %d with older tokens, which it refused\n",
		story.Count(r.Tenures, "tenure"), r.Acked, r.Refused, r.Unclear, r.Reads, r.Samples, r.LongStops, r.Fenced, r.FencedOff)
	if r.Contender == contender.Eldest {
		fmt.Fprintf(w, "heartbeats: %s, %s, %s; keepers: %s\n", story.Count(r.Suspended, "suspension"), story.Count(r.Resumed, "resumption"),
			story.Count(r.Evicted, "eviction"), story.Count(r.Revoked, "revocation"))
	}
	for i, why := range r.InvalidBecause {
		if i == mostShown {
			fmt.Fprintf(w, "... and %d more\n", len(r.InvalidBecause)-i)
			break
		}
		fmt.Fprintln(w, style.Paint(story.Red, "INVALID")+" "+cli.Printable(why))
	}
	f.violations(w, r, style)
	fmt.Fprintln(w, verdict(r, style))
	return nil
}

// violations lists the violations, and the command that repeats each series with violations.
func (f *chaosFlags) violations(w io.Writer, r *chaos.Report, style story.Style) {
	shown := 0
	for _, s := range r.Series {
		last := 0
		for _, v := range s.Violations {
			last = max(last, v.Round)
			if shown++; shown > mostShown {
				continue
			}
			fmt.Fprintf(w, "%s %s: seed %d round %d (%s), %.3fs after the series began: %s\n", style.Paint(story.Red, "VIOLATION"), v.Invariant, v.Seed, v.Round, join(v.Faults), v.At.Seconds(), cli.Printable(v.Text))
		}
		if len(s.Violations) > 0 && shown <= mostShown {
			fmt.Fprintf(w, "  repeat with: %s\n  history: %s\n", f.command(s.Seed, max(last, 1), 0), s.Kept)
		}
	}
	if shown > mostShown {
		fmt.Fprintf(w, "... and %d more; --json has all\n", shown-mostShown)
	}
}

func verdict(r *chaos.Report, style story.Style) string {
	switch {
	case len(r.Violations) > 0:
		var counts []string
		for name, n := range r.ByInvariant {
			counts = append(counts, fmt.Sprintf("%d %s", n, name))
		}
		slices.Sort(counts)
		return style.Paint(story.Red, fmt.Sprintf("%s: %s", story.Count(len(r.Violations), "violation"), strings.Join(counts, ", ")))
	case r.Void():
		return style.Paint(story.Red, fmt.Sprintf("INVALID: %d rounds or series prove nothing; no violation in the others", len(r.InvalidBecause)))
	case r.Interrupted:
		return "interrupted; no violation until then"
	}
	return style.Paint(story.Green, "everything held: 0 violations")
}

func join(faults []chaos.Fault) string {
	var names []string
	for _, f := range faults {
		names = append(names, string(f))
	}
	return strings.Join(names, " + ")
}

// played formats how many rounds were run, and how many were requested.
func played(r *chaos.Report) string {
	if r.Rounds < r.Config.Rounds {
		return fmt.Sprintf("%d of %s", r.Rounds, story.Count(r.Config.Rounds, "round"))
	}
	return story.Count(r.Rounds, "round")
}

// chaosLine formats the progress of a run.
func chaosLine(now chaos.Progress, passed, limit time.Duration) string {
	if now.Round == 0 {
		return "chaos: starting"
	}
	total := ""
	if now.Total > 0 {
		total = fmt.Sprintf("/%d", now.Total)
	}
	line := fmt.Sprintf("chaos %d%s  %s", now.Done+1, total, clock(passed))
	switch {
	case limit > 0:
		line += " of " + clock(limit)
	case now.Done >= 5 && now.Total > 0:
		line += fmt.Sprintf(", about %s left", clock(passed/time.Duration(now.Done)*time.Duration(now.Total-now.Done)))
	}
	if now.Violations > 0 {
		line += fmt.Sprintf("  %d VIOLATIONS", now.Violations)
	}
	if now.Invalid > 0 {
		line += fmt.Sprintf("  %d invalid", now.Invalid)
	}
	return fmt.Sprintf("%s  seed %d round %d: %s", line, now.Series, now.Round, now.Text)
}
