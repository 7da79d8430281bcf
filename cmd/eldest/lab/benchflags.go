package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/bench"
)

// benchFlags are the flags of everything that measures.
type benchFlags struct {
	members, rounds, warmup, load, processes int
	contenders                               []string
	sizes                                    []int
	ttls                                     []time.Duration
	data                                     string
	progress                                 bool
	// json and html are files, "-" for stdout, "" for none.
	json, html string
	conn       *connect.Flags
	// remote says that the cluster is somebody else's.
	remote bool
}

// toStdout as a file's name is stdout.
const toStdout = "-"

// addBenchFlags gives a command the flags; those of which the defaults are empty mean
// nothing to its scenario and are left out.
func addBenchFlags(cmd *cobra.Command, defaults bench.Options) *benchFlags {
	f := &benchFlags{}
	fl := cmd.Flags()
	fl.SortFlags = false // those of the measurement first
	fl.IntVar(&f.rounds, "rounds", defaults.Rounds, orOwn(defaults.Rounds, "samples of each contender at each point"))
	fl.IntVar(&f.warmup, "warmup", defaults.Warmup, orOwn(defaults.Rounds, "turns that are thrown away before"))
	fl.StringSliceVar(&f.contenders, "contender", nil, "who takes part; comma separated or repeated (default: all but drop-in)")
	if len(defaults.Sizes) > 0 {
		fl.IntSliceVarP(&f.sizes, "size", "n", nil, "the Ns; comma separated or repeated (default: "+list(defaults.Sizes, defaults.Rounds)+")")
	}
	if len(defaults.TTLs) > 0 {
		fl.DurationSliceVar(&f.ttls, "ttl", nil, "`TTLs` of the leases; comma separated or repeated (default: "+list(defaults.TTLs, defaults.Rounds)+")")
		fl.Lookup("ttl").DefValue = "" // it is in the text
	}
	if defaults.Load > 0 {
		fl.IntVar(&f.load, "load", defaults.Load, orOwn(defaults.Rounds, "background writes a second, in the regimes that have any"))
	}
	fl.IntVar(&f.processes, "processes", defaults.Processes, "spread candidates and observers over this many processes; 0: as the scenario does\n(crash: one for each leader, fanout: also 4 for observers, else: none but this one)")
	addJSONFile(fl, &f.json)
	fl.StringVar(&f.html, "html", "", "write a page with pictures to `FILE`")
	fl.BoolVar(&f.progress, "progress", false, "report progress on stderr even if that is no terminal, a line every 15 s")
	fl.IntVar(&f.members, "members", 3, "members of our own cluster: 1, 3 or 5")
	fl.StringVar(&f.data, "data", "", "where they keep their data: memory, disk or a directory (default: memory if there\nis such a file system, else disk)")
	f.conn = connect.AddFlags(cmd)
	f.conn.Explicit = true
	fl.Lookup("endpoints").Usage = "measure on this cluster instead of one of our own; comma separated"
	fl.Lookup("endpoints").DefValue = "[]" // shown as none: the environment's are not taken
	_ = fl.MarkHidden("namespace")         // its keys have their own names
	return f
}

// orOwn is the usage of a flag; without rounds the defaults are those of many scenarios.
func orOwn(rounds int, usage string) string {
	if rounds == 0 {
		usage += " (default: each scenario's own)"
	}
	return usage
}

// list renders default values, of one scenario.
func list[T any](values []T, rounds int) string {
	if rounds == 0 {
		return "each scenario's own"
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ",")
}

// settle refuses what cannot work, before anything is started.
func (f *benchFlags) settle(cmd *cobra.Command, args []string) error {
	fl := cmd.Flags()
	if err := settleJSONFile(fl, &f.json, args, "--json or --html"); err != nil {
		return err
	}
	switch {
	case fl.Changed("html") && f.html == "":
		return cli.Usagef("--html: names no file")
	case f.json == toStdout && f.html == toStdout:
		return cli.Usagef("--json and --html cannot both be written to stdout; give one a file")
	}
	if err := f.checkCounts(fl); err != nil {
		return err
	}
	if err := checkContenders(f.contenders); err != nil {
		return err
	}
	f.remote = fl.Changed("endpoints")
	if f.remote {
		for _, name := range []string{"members", "data"} {
			if fl.Changed(name) {
				return cli.Usagef("--%s is for a cluster of our own, not for that of --endpoints", name)
			}
		}
		if err := f.conn.Resolve(cmd); err != nil {
			return err
		}
		if f.conn.Namespace != "" {
			return cli.Usagef("the keys of a benchmark have names of their own, without a namespace; use --namespace= against that of the environment")
		}
		return nil
	}
	for _, name := range connect.FlagNames {
		if fl.Changed(name) && name != "command-timeout" {
			return cli.Usagef("--%s is for a cluster that --endpoints names", name)
		}
	}
	if !slices.Contains([]int{1, 3, 5}, f.members) {
		return cli.Usagef("--members %d: it can be 1, 3 or 5", f.members)
	}
	return nil
}

// checkCounts refuses numbers that no run can have.
func (f *benchFlags) checkCounts(fl *pflag.FlagSet) error {
	for _, n := range f.sizes {
		if n < 1 {
			return cli.Usagef("--size %d: want 1 or more", n)
		}
	}
	for _, ttl := range f.ttls {
		if ttl < time.Second || ttl%time.Second != 0 {
			return cli.Usagef("--ttl %v: want whole seconds, 1s or more; etcd counts in seconds", ttl)
		}
	}
	switch {
	case fl.Changed("rounds") && f.rounds < 1:
		return cli.Usagef("--rounds %d: want 1 or more", f.rounds)
	case f.warmup < 0:
		return cli.Usagef("--warmup %d: want 0 or more", f.warmup)
	case fl.Changed("load") && f.load < 1:
		return cli.Usagef("--load %d: want 1 or more; there are regimes without any, too", f.load)
	case f.processes < 0:
		return cli.Usagef("--processes %d: want 0 or more", f.processes)
	}
	return nil
}

// options are the flags for one scenario; what means nothing to it is left out.
func (f *benchFlags) options(cmd *cobra.Command, s bench.Scenario) bench.Options {
	o := bench.Options{Contenders: f.contenders, Processes: f.processes}
	if cmd.Flags().Changed("rounds") {
		o.Rounds = f.rounds
	}
	if cmd.Flags().Changed("warmup") {
		if o.Warmup = f.warmup; f.warmup == 0 {
			o.Warmup = -1
		}
	}
	if cmd.Flags().Changed("load") && s.Defaults.Load > 0 {
		o.Load = f.load
	}
	if len(s.Defaults.Sizes) > 0 {
		o.Sizes = f.sizes
	}
	if len(s.Defaults.TTLs) > 0 {
		o.TTLs = f.ttls
	}
	return o
}

// commandLine is what was called, without secrets: reports are shown to others.
func commandLine(cmd *cobra.Command) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		switch flag.Name {
		case "password", "json", "html", "progress":
			return
		case "user":
			value, _, _ = strings.Cut(value, ":")
		}
		words = append(words, "--"+flag.Name, strings.Trim(value, "[]"))
	})
	return strings.Join(words, " ")
}
