package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

// benchFlags are the flags of all commands that measure.
type benchFlags struct {
	// given are the options that have flags; 0 or empty means the scenario's default.
	given bench.Options
	paperFlags
	members int
	data    string
	conn    *connect.Flags
	// remote means that --endpoints names the cluster.
	remote bool
}

// addBenchFlags adds to a command the flags that apply to at least one of its scenarios. Zero
// defaults mean each scenario's own.
func addBenchFlags(cmd *cobra.Command, defaults bench.Options, scenarios []bench.Scenario) *benchFlags {
	f := &benchFlags{}
	fl := cmd.Flags()
	fl.SortFlags = false // the measurement's flags come first
	// shown sets the default that the help shows; a flag that is not given stays 0.
	shown := func(flag, value string) {
		if flag := fl.Lookup(flag); len(scenarios) > 1 {
			flag.Usage += " (default: each scenario's own)"
			if flag.Value.Type() == "durationSlice" {
				flag.DefValue = "" // pflag would show "[]"; it shows no zero default of other types
			}
		} else {
			flag.DefValue = value
		}
	}
	some := func(has func(bench.Options) bool) bool {
		return slices.ContainsFunc(scenarios, func(s bench.Scenario) bool { return has(s.Defaults) })
	}
	fl.IntVar(&f.given.Rounds, "rounds", 0, "samples of each contender at each point")
	shown("rounds", strconv.Itoa(defaults.Rounds))
	fl.IntVar(&f.given.Warmup, "warmup", 0, "turns that are discarded before the measurement")
	shown("warmup", strconv.Itoa(defaults.Warmup))
	fl.StringSliceVar(&f.given.Contenders, "contender", nil, "contenders; comma separated or repeated (default: all contenders of the scenario,\nwithout drop-in)")
	if some(func(d bench.Options) bool { return len(d.Sizes) > 0 }) {
		fl.IntSliceVarP(&f.given.Sizes, "size", "n", nil, "values of N; comma separated or repeated")
		shown("size", list(defaults.Sizes))
	}
	if some(func(d bench.Options) bool { return len(d.TTLs) > 0 }) {
		fl.DurationSliceVar(&f.given.TTLs, "ttl", nil, "`TTLs` of the leases; comma separated or repeated")
		shown("ttl", list(defaults.TTLs))
	}
	if some(func(d bench.Options) bool { return d.Load > 0 }) {
		fl.IntVar(&f.given.Load, "load", 0, "background writes a second, in the regimes that have any")
		shown("load", strconv.Itoa(defaults.Load))
	}
	if some(func(d bench.Options) bool { return d.For > 0 }) {
		fl.DurationVar(&f.given.For, "for", 0, "duration of one turn, in scenarios that count events in a fixed time")
		shown("for", defaults.For.String())
	}
	if len(scenarios) == 1 && len(scenarios[0].Regimes) > 1 {
		fl.StringSliceVar(&f.given.Regimes, "regime", nil, "which regimes; comma separated or repeated (default: all)")
	}
	if slices.ContainsFunc(scenarios, func(s bench.Scenario) bool { return !s.InProcess }) {
		fl.IntVar(&f.given.Processes, "processes", 0, "spread candidates and observers over this many processes (default: the scenario's;\ncrash: one for each leader, fanout: also 4 for observers, else: only this one)")
	}
	f.addTo(fl)
	fl.IntVar(&f.members, "members", 3, "members of the cluster that it starts: 1, 3 or 5")
	fl.StringVar(&f.data, "data", "", "where these members keep their data: memory, disk or a directory (default: memory if there\nis such a file system, else disk)")
	f.conn = connect.AddFlags(cmd)
	f.conn.Explicit = true
	fl.Lookup("endpoints").Usage = "measure on this cluster instead of starting one; comma separated"
	fl.Lookup("endpoints").DefValue = "[]" // shown as empty: the environment's endpoints are not used
	_ = fl.MarkHidden("namespace")         // a benchmark's keys have their own names
	return f
}

// list renders default values.
func list[T any](values []T) string {
	return "[" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(values), "[]")), ",") + "]"
}

// settle completes and checks the flags, before anything is started.
func (f *benchFlags) settle(cmd *cobra.Command, args []string) error {
	fl := cmd.Flags()
	if err := f.paperFlags.settle(fl, args, "json", "html"); err != nil {
		return err
	}
	if err := cli.Positive(fl, "rounds", "load", "for", "processes", "command-timeout"); err != nil {
		return err
	}
	switch {
	case f.given.Warmup < 0:
		return cli.Usagef("--warmup %d: want 0 or more", f.given.Warmup)
	case fl.Changed("warmup") && f.given.Warmup == 0:
		f.given.Warmup = -1
	}
	// Some of these options may not apply to some of the scenarios.
	whole := bench.Scenario{Name: cmd.Name(), Defaults: bench.Options{Sizes: []int{1}, TTLs: []time.Duration{1}, For: 1}}
	given := f.given
	given.Regimes, given.Contenders = nil, nil // runBench checks them against their scenario
	if err := whole.Check(given); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	f.remote = fl.Changed("endpoints")
	if !f.remote {
		for _, name := range connect.FlagNames {
			if fl.Changed(name) && name != "command-timeout" {
				return cli.Usagef("--%s is for a cluster that --endpoints names", name)
			}
		}
		if !slices.Contains([]int{1, 3, 5}, f.members) {
			return cli.Usagef("--members %d: want 1, 3 or 5", f.members)
		}
		return nil
	}
	for _, name := range []string{"members", "data"} {
		if fl.Changed(name) {
			return cli.Usagef("--%s does not apply to the cluster of --endpoints", name)
		}
	}
	if err := f.conn.Resolve(cmd); err != nil {
		return err
	}
	if f.conn.Namespace != "" {
		return cli.Usagef("a benchmark uses no namespace; override the environment variable with --namespace=")
	}
	return nil
}

// options returns the options for one scenario, without those that do not apply to it.
func (f *benchFlags) options(s bench.Scenario) bench.Options {
	o := f.given
	if s.Defaults.Load == 0 {
		o.Load = 0
	}
	if len(s.Defaults.Sizes) == 0 {
		o.Sizes = nil
	}
	if len(s.Defaults.TTLs) == 0 {
		o.TTLs = nil
	}
	if s.Defaults.For == 0 {
		o.For = 0
	}
	if s.InProcess {
		o.Processes = 0
	}
	return o
}

// commandLine returns the command line without secrets, because reports are shown to others.
func commandLine(cmd *cobra.Command) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		switch flag.Name {
		case "password", "json", "html", "markdown", "progress":
			return
		case "user":
			value, _, _ = strings.Cut(value, ":")
		}
		words = append(words, "--"+flag.Name, strings.Trim(value, "[]"))
	})
	return strings.Join(words, " ")
}
