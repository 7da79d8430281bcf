package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
)

// chaosFlags are the flags of "eldest chaos".
type chaosFlags struct {
	cfg      chaos.Config
	faults   []string
	json     string
	progress bool
	// others are the flags that a repetition of the run needs, besides the seed and the rounds.
	others string
}

// The defaults of a run: about a minute.
const (
	chaosRounds       = 25
	chaosSeriesRounds = 25
)

func newChaosCmd() *cobra.Command {
	var f chaosFlags
	cmd := &cobra.Command{
		Use:     "chaos",
		Short:   "Test elections under faults, and check the guarantees",
		Long:    chaosHelp,
		Example: chaosExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.faults) == 1 && f.faults[0] == "list" {
				return listFaults(cmd.OutOrStdout(), cmd.Flags().Changed("json"))
			}
			if err := f.settle(cmd.Flags(), args); err != nil {
				return err
			}
			return runChaos(cmd, f)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

func (f *chaosFlags) bind(fl *pflag.FlagSet) {
	fl.SortFlags = false
	fl.StringVar(&f.cfg.Contender, "contender", contender.Eldest, "the election under test: "+contender.Eldest+", etcd's "+contender.Concurrency+", or the "+contender.DropIn+" in its place")
	fl.IntVar(&f.cfg.Rounds, "rounds", chaosRounds, "number of rounds; 0: as many as --duration allows")
	fl.DurationVar(&f.cfg.Duration, "duration", 0, "begin no round after this time (default: no limit)")
	fl.Uint64Var(&f.cfg.Seed, "seed", 0, "seed of the first series; each further series has the next seed (default: random)")
	fl.IntVar(&f.cfg.SeriesRounds, "series", chaosSeriesRounds, "rounds with one cluster")
	fl.StringSliceVar(&f.faults, "faults", nil, "the faults to inject, comma separated or repeated; \"list\" lists them (default: all)")
	fl.IntVar(&f.cfg.Members, "members", 3, "members of etcd: 1, 3 or 5")
	fl.IntVar(&f.cfg.Participants, "participants", 5, fmt.Sprintf("candidates, each a process: 2 to %d", chaos.MaxParticipants))
	cli.TTLVar(fl, &f.cfg.TTL, time.Second, fmt.Sprintf("TTL of the leases, in whole seconds, up to %v", chaos.MaxTTL))
	fl.StringVar(&f.cfg.Dir, "dir", "", "keep the histories of all series in this directory (default: only series with a\nviolation, in a temporary directory)")
	addJSONFile(fl, &f.json)
	fl.BoolVar(&f.progress, "progress", false, "report progress on stderr even if that is no terminal, a line every 15 s")
	fl.StringVar(&f.cfg.Without, "without-rule", "", "take a rule out of the participants: "+strings.Join(participant.Rules, ", "))
	_ = fl.MarkHidden("without-rule") // it is for tests of chaos itself
}

// settle completes and checks the flags, before anything is started.
func (f *chaosFlags) settle(fl *pflag.FlagSet, args []string) error {
	if err := settleJSONFile(fl, &f.json, args, "--json"); err != nil {
		return err
	}
	if err := cli.Positive(fl, "duration"); err != nil {
		return err
	}
	if fl.Changed("dir") && f.cfg.Dir == "" {
		return cli.Usagef("--dir: names no directory")
	}
	if fl.Changed("duration") && !fl.Changed("rounds") {
		f.cfg.Rounds = 0
	}
	if !fl.Changed("seed") {
		f.cfg.Seed = rand.Uint64N(1 << 32)
	}
	if fl.Changed("faults") && len(f.faults) == 0 {
		return cli.Usagef("--faults: names none; \"--faults list\" shows them")
	}
	faults, err := chaos.Parse(f.faults, f.cfg.Contender)
	if err != nil {
		return cli.Usagef("--faults: %v; \"--faults list\" shows them", err)
	}
	if f.cfg.Members == 1 && len(f.faults) == 0 {
		faults = slices.DeleteFunc(faults, chaos.NeedsPeers)
	}
	f.cfg.Faults = faults
	if err := f.cfg.Check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if f.cfg.Dir != "" {
		if err := os.MkdirAll(f.cfg.Dir, 0o755); err != nil {
			return cli.Usagef("--dir: %v", err)
		}
	}
	fl.Visit(func(fl *pflag.Flag) {
		if !slices.Contains([]string{"seed", "rounds", "duration", "json", "dir", "progress"}, fl.Name) {
			f.others += fmt.Sprintf(" --%s %s", fl.Name, strings.Trim(fl.Value.String(), "[]"))
		}
	})
	return nil
}

// runChaos runs the rounds and reports their results.
func runChaos(cmd *cobra.Command, f chaosFlags) (err error) {
	if runtime.GOOS != "linux" { // only there processes share a clock that cannot be set
		return errors.New("chaos needs Linux")
	}
	defer heedSignals(cmd)()
	paper, err := openPaper("--json", f.json, cmd.OutOrStdout())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, paper.close()) }()
	if f.cfg.Executable, err = os.Executable(); err != nil {
		return err
	}
	f.cfg.Member = []string{f.cfg.Executable, "etcd", "member"}
	show := cli.NewProgress(cmd.ErrOrStderr(), f.progress, func(last chaos.Progress, passed time.Duration) string {
		return chaosLine(last, passed, f.cfg.Duration)
	})
	f.cfg.Progress = show.Update
	report, err := chaos.Run(cmd.Context(), f.cfg)
	show.Close()
	if err != nil {
		return err
	}
	if err := f.write(cmd, paper, report); err != nil {
		return err
	}
	switch {
	case len(report.Violations) > 0:
		return cli.Exit(cli.ExitFailed, nil)
	case report.Interrupted:
		return cli.Exit(exitInterrupted, nil)
	case report.Void():
		return cli.Exit(cli.ExitProvesNothing, nil)
	}
	return nil
}
