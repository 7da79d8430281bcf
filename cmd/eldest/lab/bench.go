package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/bench/contender"
)

// newBenchCmd has a subcommand for each scenario, so that each has flags that mean
// something to it, and its own defaults in its help.
func newBenchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench SCENARIO",
		Short: "Measure elections, ours beside others'",
		Long: `Measures what an election on etcd costs, with Eldest and with others, in one run: the
contenders take turns, round by round, so that a machine that drifts drifts for all of
them. What counts is the ratios, not the times.

Failover, when a leader dies or loses its network: crash and cut. Graceful change, when it
resigns: handover; through a whole queue: drain; until observers know: fanout. What is used at rest: footprint and sessions.

Contenders:
  eldest       this project
  concurrency  etcd's own package
  herd         the naive protocol, in which every waiter watches everything
  floor        no protocol: a raw delete, seen by a raw watch

"eldest bench SCENARIO --help" shows a scenario's flags, "eldest bench all" runs them
all, "eldest bench report" makes a page of what was stored with --json.
` + benchHelp,
		Example: `  eldest bench handover
  eldest bench herd --size 10,100,1000 --html herd.html
  eldest bench all --members 1 --json all.json
  eldest bench crash --endpoints etcd1:2379,etcd2:2379,etcd3:2379 --processes 4`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listScenarios(cmd.OutOrStdout(), cli.WantsJSON(cmd))
			}
			return unknownScenario(cmd, args[0])
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	// That of all commands, in words that are true here.
	cmd.Flags().Bool("json", false, "list the scenarios as JSON; of one that measures, --json names a file")
	cmd.AddGroup(&cobra.Group{ID: scenarioGroup, Title: "Scenarios:"}, &cobra.Group{ID: otherGroup, Title: "Other commands:"})
	for _, s := range bench.Scenarios() {
		cmd.AddCommand(newScenarioCmd(s))
	}
	cmd.AddCommand(newBenchAllCmd(), newBenchListCmd(), newBenchReportCmd(), newBenchWorkerCmd())
	return cmd
}

// The groups of subcommands in the help.
const (
	scenarioGroup = "scenarios"
	otherGroup    = "others"
)

func newScenarioCmd(s bench.Scenario) *cobra.Command {
	var f *benchFlags
	cmd := &cobra.Command{
		Use: s.Name, GroupID: scenarioGroup,
		Short: s.Summary,
		Long:  strings.ToUpper(s.Summary[:1]) + s.Summary[1:] + ".\n" + wordsHelp(s) + benchHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(cmd, args); err != nil {
				return err
			}
			return runBench(cmd, f, []bench.Scenario{s})
		},
	}
	f = addBenchFlags(cmd, s.Defaults)
	return cmd
}

func newBenchAllCmd() *cobra.Command {
	var f *benchFlags
	cmd := &cobra.Command{
		Use: "all", GroupID: scenarioGroup,
		Short: "Run all scenarios, one after another",
		Long: `Runs all scenarios, one after another, on one cluster. Flags that mean nothing to a
scenario are left out there; those that are not given have each scenario's own default.
The file of --json is written again after each scenario.
` + benchHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(cmd, args); err != nil {
				return err
			}
			return runBench(cmd, f, bench.Scenarios())
		},
	}
	f = addBenchFlags(cmd, all())
	return cmd
}

// all is options of which each means something.
func all() bench.Options {
	var every bench.Options
	for _, s := range bench.Scenarios() {
		every.Sizes = append(every.Sizes, s.Defaults.Sizes...)
		every.TTLs = append(every.TTLs, s.Defaults.TTLs...)
		every.Load += s.Defaults.Load
	}
	return every
}

func newBenchListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", GroupID: otherGroup,
		Short: "List the scenarios",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listScenarios(cmd.OutOrStdout(), cli.WantsJSON(cmd))
		},
	}
}

// listScenarios writes a line for each scenario, or an array for programs.
func listScenarios(w io.Writer, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(w, scenarioLines())
		return err
	}
	type row struct {
		Scenario string   `json:"scenario"`
		Summary  string   `json:"summary"`
		Rounds   int      `json:"rounds"`
		Sizes    []int    `json:"sizes,omitempty"`
		TTLs     []string `json:"ttls,omitempty"`
		Load     int      `json:"load,omitempty"`
		// What the words in the results mean.
		Regimes []bench.Term `json:"regimes,omitempty"`
		Metrics []bench.Term `json:"metrics,omitempty"`
	}
	rows := []row{}
	for _, s := range bench.Scenarios() {
		r := row{
			Scenario: s.Name, Summary: s.Summary, Rounds: s.Defaults.Rounds, Sizes: s.Defaults.Sizes, Load: s.Defaults.Load,
			Regimes: s.Regimes, Metrics: s.Metrics,
		}
		for _, ttl := range s.Defaults.TTLs {
			r.TTLs = append(r.TTLs, ttl.String())
		}
		rows = append(rows, r)
	}
	return json.NewEncoder(w).Encode(rows)
}

// scenarioLines are the scenarios for people.
func scenarioLines() string {
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, s := range bench.Scenarios() {
		fmt.Fprintf(tw, "  %s\t%s\n", s.Name, s.Summary)
	}
	_ = tw.Flush() // a Builder takes everything
	return text.String()
}

// unknownScenario says what there is instead.
func unknownScenario(cmd *cobra.Command, name string) error {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return cli.Usagef("no scenario %q; did you mean %q?", name, near[0])
	}
	var names []string
	for _, s := range bench.Scenarios() {
		names = append(names, s.Name)
	}
	return cli.Usagef("no scenario %q; there are %s, and all", name, strings.Join(names, ", "))
}

// checkContenders refuses names that nobody has.
func checkContenders(names []string) error {
	for _, name := range names {
		if _, err := contender.Named(name); err != nil {
			return cli.Usagef("--contender: %w", err)
		}
	}
	return nil
}
