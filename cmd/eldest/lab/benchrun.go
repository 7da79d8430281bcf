package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// runBench measures scenarios, one after another, and reports each. Whatever ends it,
// what was measured until then is reported and everything that was started is gone.
func runBench(cmd *cobra.Command, f *benchFlags, scenarios []bench.Scenario) (err error) {
	defer heedSignals(cmd)()
	papers, err := openPapers(cmd, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, papers.close()) }()

	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	place, err := f.place(ctx, cancel)
	if err != nil {
		return interrupted(cmd, f.benchError(ctx, err))
	}
	defer func() { err = errors.Join(err, place.close()) }()

	var failures, refused []error
	for i, s := range scenarios {
		run, err := measure(ctx, cmd, f, place.Site, s, fmt.Sprintf("%d/%d", i+1, len(scenarios)))
		var untold error
		if run != nil {
			untold = papers.add(*run)
		}
		switch {
		case cmd.Context().Err() != nil:
			return cli.Exit(exitInterrupted, untold) // whose terminal may have gone
		case untold != nil:
			return untold
		case ctx.Err() != nil:
			return context.Cause(ctx) // a member of ours died
		case errors.Is(err, bench.ErrInvalid):
			refused = append(refused, f.benchError(ctx, err))
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", s.Name, f.benchError(ctx, err)))
		default:
			failures = append(failures, hopeless(run))
		}
	}
	if len(refused) == len(scenarios) {
		return errors.Join(refused...)
	}
	// Of all scenarios some may have no use for the flags.
	for _, err := range refused {
		fmt.Fprintf(cmd.ErrOrStderr(), "left out: %v\n", err)
	}
	return errors.Join(failures...)
}

// interrupted makes an exit code of a signal, and leaves other errors as they are.
func interrupted(cmd *cobra.Command, err error) error {
	if cmd.Context().Err() != nil {
		return cli.Exit(exitInterrupted, nil)
	}
	return err
}

// hopeless is the error of a run in which all turns of a contender failed at a point.
func hopeless(run *figures.Run) error {
	if failed := run.Failed(); len(failed) > 0 {
		return fmt.Errorf("%s: all turns failed of %s", run.Scenario, strings.Join(failed, ", "))
	}
	return nil
}

// measure runs one scenario. The run is nil if nothing was measured at all.
func measure(ctx context.Context, cmd *cobra.Command, f *benchFlags, site bench.Site, s bench.Scenario, nth string) (*figures.Run, error) {
	o := f.options(cmd, s)
	title, ttl := strings.TrimPrefix(nth+" ", "1/1 ")+s.Name, figures.SizesAreTTLs(s.Name)
	show := cli.NewProgress(cmd.ErrOrStderr(), f.progress, func(last bench.Progress, passed time.Duration) string {
		return progressLine(title, last, ttl, passed)
	})
	o.Progress = show.Update
	began := time.Now()
	report, err := bench.Run(ctx, site, s.Name, o)
	show.Close()
	if report == nil || errors.Is(err, bench.ErrInvalid) {
		return nil, err
	}
	run := figures.New(report)
	run.Summary, run.Seconds = s.Summary, time.Since(began).Round(time.Millisecond).Seconds()
	run.Setup.Command, run.Setup.Eldest, run.Setup.CPU = commandLine(cmd), cli.Version(), cpuModel()
	switch {
	case cmd.Context().Err() != nil:
		run.Incomplete = "interrupted"
	case err != nil:
		run.Incomplete = err.Error()
	}
	return &run, err
}

// styleFor is that of the command's output.
func styleFor(cmd *cobra.Command) story.Style { return story.StyleOf(cmd.OutOrStdout(), os.Getenv) }

// cpuModel is what Linux calls the processor, "" where that is not known.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
