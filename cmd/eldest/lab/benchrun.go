package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchsite"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// runBench measures scenarios, one after another, and reports each. However it ends, it reports
// what was measured until then and stops everything that it started.
func runBench(cmd *cobra.Command, f *benchFlags, scenarios []bench.Scenario) (err error) {
	var refused []error
	var left []bench.Scenario
	for _, s := range scenarios {
		if err := s.Check(f.options(s)); err != nil {
			refused = append(refused, err)
		} else {
			left = append(left, s)
		}
	}
	if len(left) == 0 {
		return cli.Exit(cli.ExitUsage, errors.Join(refused...))
	}
	defer heedSignals(cmd)()
	papers, err := openBenchPapers(cmd, f.paperFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, papers.close()) }()

	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	place, err := benchsite.Open(ctx, benchsite.Config{
		Access: f.conn, Remote: f.remote, Members: f.members, Data: f.data, Died: cancel,
		Member: []string{executable, "etcd", "member"}, Worker: []string{executable, "bench", "worker"},
	})
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case errors.Is(err, benchsite.ErrInvalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil:
		return f.explain(ctx, err)
	}
	defer func() { err = errors.Join(err, place.Close()) }()

	var failures []error
	for i, s := range left {
		report, err := measure(ctx, cmd, f, place.Site, s, fmt.Sprintf("%d/%d ", i+1, len(left)))
		var unwritten error
		if report != nil {
			unwritten = papers.add(report)
		}
		switch {
		case cmd.Context().Err() != nil:
			return cli.Exit(exitInterrupted, unwritten) // writing fails if the terminal is closed
		case unwritten != nil:
			return unwritten
		case ctx.Err() != nil:
			return context.Cause(ctx) // a member of our cluster died
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", s.Name, f.explain(ctx, err)))
		default:
			failures = append(failures, hopeless(report))
		}
	}
	for _, err := range refused {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped: %v\n", err)
	}
	return errors.Join(failures...)
}

// benchPapers are the outputs of a benchmark.
type benchPapers struct {
	*papers
	runs []*bench.Report
}

// openBenchPapers opens the files; see openPapers.
func openBenchPapers(cmd *cobra.Command, f paperFlags) (p *benchPapers, err error) {
	p = &benchPapers{}
	p.papers, err = openPapers(cmd, f, renderers{
		json: func(w io.Writer) error { return figures.Write(w, p.runs) },
		html: func(w io.Writer) error { return figures.Page(w, p.runs) },
		table: func(w io.Writer) error { // of the last run
			if len(p.runs) > 1 {
				fmt.Fprintln(w)
			}
			return figures.Table(w, p.runs[len(p.runs)-1], styleFor(cmd))
		},
	})
	return p, err
}

// add reports one more run. It rewrites the files each time, so a long series that is killed leaves
// the runs that were complete.
func (p *benchPapers) add(r *bench.Report) error {
	plain.Texts(r) // errors may have any text
	p.runs = append(p.runs, r)
	return p.write()
}

// explain adds advice to an error of a run on a cluster that --endpoints names.
func (f *benchFlags) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil || !f.remote {
		return err
	}
	return f.conn.Explain(ctx, err)
}

// hopeless returns an error if all turns of a contender failed at one point of the run.
func hopeless(r *bench.Report) error {
	if failed := figures.Failed(r); len(failed) > 0 {
		return fmt.Errorf("%s: all turns of %s failed", r.Scenario, strings.Join(failed, ", "))
	}
	return nil
}

// measure runs one scenario. The report is nil if nothing was measured.
func measure(ctx context.Context, cmd *cobra.Command, f *benchFlags, site bench.Site, s bench.Scenario, nth string) (*bench.Report, error) {
	o := f.options(s)
	title, ttl := strings.TrimPrefix(nth, "1/1 ")+s.Name, figures.SizesAreTTLs(s.Name)
	show := cli.NewProgress(cmd.ErrOrStderr(), f.progress, func(last bench.Progress, passed time.Duration) string {
		return progressLine(title, last, ttl, passed)
	})
	o.Progress = show.Update
	report, err := bench.Run(ctx, site, s.Name, o)
	show.Close()
	if report != nil {
		report.Setup.Command, report.Setup.Eldest, report.Setup.CPU = commandLine(cmd), cli.Version(), cpuModel()
		if cmd.Context().Err() != nil {
			report.Incomplete = "interrupted"
		}
	}
	return report, err
}

// progressLine formats the progress of a benchmark; ttl means that its Ns are TTLs.
func progressLine(title string, now bench.Progress, ttl bool, passed time.Duration) string {
	if now.Total == 0 {
		return title + ": starting"
	}
	where := []string{title}
	if now.Regime != "" {
		where = append(where, now.Regime)
	}
	if now.N > 0 {
		where = append(where, figures.Size(now.N, ttl))
	}
	line := fmt.Sprintf("%s %s  %d/%d  %s", strings.Join(where, " "), now.Contender, now.Done, now.Total, clock(passed))
	// Turns differ in duration, so the first ones give no estimate.
	if now.Done >= 10 || now.Done > 0 && passed > 5*time.Second {
		line += fmt.Sprintf(", about %s left", clock(passed/time.Duration(now.Done)*time.Duration(now.Total-now.Done)))
	}
	return line
}

// clock formats a duration as m:ss, or as h:mm:ss.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// styleFor returns the style of the command's output.
func styleFor(cmd *cobra.Command) story.Style { return story.StyleOf(cmd.OutOrStdout(), os.Getenv) }

// cpuModel returns Linux's name of the processor, or "" if it is unknown.
func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
