//go:build linux

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

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// mostShown is how many violations, and how many reasons for what is invalid, the table
// shows; --json has all.
const mostShown = 20

// listFaults writes a line for each fault, or an array for programs.
func listFaults(w io.Writer, asJSON bool) error {
	if asJSON {
		type row struct {
			Fault   plan.Fault `json:"fault"`
			Summary string     `json:"summary"`
		}
		var rows []row
		for _, i := range plan.All() {
			rows = append(rows, row{i.Fault, i.Summary})
		}
		return json.NewEncoder(w).Encode(rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, i := range plan.All() {
		fmt.Fprintf(tw, "%s\t%s\n", i.Fault, i.Summary)
	}
	return tw.Flush()
}

// write reports a run: to the file of --json, and as tables unless that is stdout.
func (f *chaosFlags) write(cmd *cobra.Command, paper *paper, r *chaos.Report) error {
	err := paper.write(func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Version string `json:"version"`
			Command string `json:"command"`
			*chaos.Report
		}{cli.Version(), commandOf(r, f.cfg), r})
	})
	if err != nil || paper.isStdout() {
		return err
	}
	return chaosTable(cmd.OutOrStdout(), r, f.cfg.Faults, styleFor(cmd))
}

// chaosTable is the report for people.
func chaosTable(w io.Writer, r *chaos.Report, faults []plan.Fault, style story.Style) error {
	fmt.Fprintf(w, "%s: %s, seed %d, %d members, %d participants, TTL %v, %s\n\n",
		r.Contender, played(r), r.Seed, r.Members, r.Participants, r.TTL, clock(time.Duration(r.Seconds*float64(time.Second))))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "fault\tinjected\ttook effect\trounds with violations\t")
	for _, l := range r.Faults {
		if l.Injected == 0 {
			continue // it was not drawn
		}
		struck := fmt.Sprint(l.Struck)
		if l.Unsupported > 0 {
			struck = fmt.Sprintf("n/a %d", l.Unsupported)
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%d\t\n", l.Fault, l.Injected, struck, l.Violations)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if unsupported(r) {
		fmt.Fprintf(w, "n/a: cannot be done to %s; such a round has its other fault, or none\n", r.Contender)
	}
	fmt.Fprintf(w, "\n%s; guarded writes: %d acknowledged, %d refused, %d unknown; %d reads; %d samples of who is sure to lead;\n"+
		"%d stops of a leader for longer than its lease; %d writes to the store outside, and %d with older tokens, refused there\n",
		story.Count(r.Tenures, "tenure"), r.Acked, r.Refused, r.Unclear, r.Reads, r.Samples, r.LongStops, r.Fenced, r.FencedOff)
	for i, why := range r.InvalidBecause {
		if i == mostShown {
			fmt.Fprintf(w, "... and %d more\n", len(r.InvalidBecause)-i)
			break
		}
		fmt.Fprintln(w, style.Paint(story.Red, "INVALID")+" "+cli.Printable(why))
	}
	showViolations(w, r, faults, style)
	fmt.Fprintln(w, verdict(r, style))
	return nil
}

// showViolations lists them, and how each series with any is run again.
func showViolations(w io.Writer, r *chaos.Report, faults []plan.Fault, style story.Style) {
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
			fmt.Fprintf(w, "  again: %s\n  history: %s\n", repeat(r, s.Seed, last, faults), s.Kept)
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
		return style.Paint(story.Red, fmt.Sprintf("INVALID: %d rounds and series prove nothing; no violation in the others", len(r.InvalidBecause)))
	case r.Interrupted:
		return "interrupted; no violation until then"
	}
	return style.Paint(story.Green, "everything held: 0 violations")
}

func join(faults []plan.Fault) string {
	var names []string
	for _, f := range faults {
		names = append(names, string(f))
	}
	return strings.Join(names, " + ")
}

// played says how many rounds there were, and how many of them were missed.
func played(r *chaos.Report) string {
	if r.Rounds < r.Wanted {
		return fmt.Sprintf("%d of %s", r.Rounds, story.Count(r.Wanted, "round"))
	}
	return story.Count(r.Rounds, "round")
}

// unsupported reports whether a fault was drawn that cannot be done to the contender.
func unsupported(r *chaos.Report) bool {
	return slices.ContainsFunc(r.Faults, func(l chaos.FaultLine) bool { return l.Unsupported > 0 })
}

// commandOf is the command line of a run.
func commandOf(r *chaos.Report, cfg chaos.Config) string {
	line := repeat(r, r.Seed, cfg.Rounds, cfg.Faults)
	if cfg.Rounds == 0 {
		line = strings.Replace(line, " --rounds 1", "", 1)
	}
	if cfg.Duration > 0 {
		line += fmt.Sprintf(" --duration %v", cfg.Duration)
	}
	return line
}

// repeat is the command line that runs a series again, up to a round.
func repeat(r *chaos.Report, seed uint64, round int, faults []plan.Fault) string {
	line := fmt.Sprintf("eldest chaos --seed %d --rounds %d", seed, max(round, 1))
	if r.SeriesRounds != chaosSeriesRounds {
		line += fmt.Sprintf(" --series %d", r.SeriesRounds)
	}
	if r.Contender != "eldest" {
		line += " --contender " + r.Contender
	}
	if r.Members != 3 {
		line += fmt.Sprintf(" --members %d", r.Members)
	}
	if r.Participants != 5 {
		line += fmt.Sprintf(" --participants %d", r.Participants)
	}
	if r.TTL != time.Second {
		line += fmt.Sprintf(" --ttl %v", r.TTL)
	}
	if len(faults) < len(plan.Names()) {
		line += " --faults " + strings.ReplaceAll(join(faults), " + ", ",")
	}
	return line
}
