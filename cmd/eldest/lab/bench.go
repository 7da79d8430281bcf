package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// benchHelp is for all commands that measure.
const benchHelp = `
Without --endpoints, it starts a cluster of --members processes of this executable, with
etcd's defaults, and measures on it. Their data is in memory unless --data selects another
place, with fsync as usual, and is removed at the end.

With --endpoints, it measures on that cluster, which may be remote. It writes keys that
begin with "eldest-bench-" or "/eldest/newest/eldest-bench-", followed by random digits,
and leases for them, and removes both; it changes no other keys or leases. The load
depends on the scenario: hundreds to thousands of small requests a second, with up to
--size leases and watches. Do not run it on a cluster that others need at the same time.
For this reason the endpoints are read from the flag only, never from the environment;
the other connection flags also have environment variables.

The first Ctrl-C, SIGTERM or SIGHUP ends it: it cleans up, which takes some seconds, and
reports the results so far. A second signal, or kill -9, ends it at once; then keys remain
in the cluster of --endpoints until their leases expire, after five minutes at most. A
cluster that it started, and all its processes, end in any case.

With default flags a scenario takes some minutes; the progress, on a terminal or
with --progress, shows how many are left. --json writes one object with all samples, of
several runs {"runs": [...]}; --html writes one page that needs no network.

Exit codes: 0 done (the table shows failed turns); 1 all turns of a contender failed at
one point, or the run failed; 2 bad usage; 130 interrupted: the measurements until then
are written, and marked incomplete.
`

// othersGroup is the group of the commands that are no scenarios.
const othersGroup = "others"

// newBenchCmd has a subcommand for each scenario: each has only the flags that apply to it, and its
// help shows its own defaults.
func newBenchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench SCENARIO",
		Short: "Benchmark Eldest against other implementations",
		Long: `Measures what an election on etcd costs, with Eldest and with others, in one run: the
contenders take turns, round by round, so that a machine that becomes slower affects all of
them. Compare the ratios, not the times.

Failover, when a leader crashes, is stopped or loses its network: crash and cut. The cost of
heartbeats, and their effect on healthy leaders: heartbeats and suspensions. Graceful change,
when a leader resigns: handover; through a whole queue: drain; until all observers are
notified: fanout; until a service that needs data answers: standby. Resources at rest: footprint and
sessions. Calls of a service through a node that follows: forwarding, whose contenders are the ways
of a call.

Contenders:
  eldest       this project
  concurrency  etcd's own package
  herd         the naive protocol, in which every candidate watches everything
  floor        no protocol: a raw delete, received by a raw watch
  drop-in      this project behind the API of etcd's package
  eldest-keeper, eldest-heartbeat-1s, eldest-heartbeat-500ms: this project with a keeper, or with heartbeats

"eldest bench SCENARIO --help" shows a scenario's flags, "eldest bench all" runs them
all, "eldest bench report" makes a page of the results that --json stored.
` + benchHelp,
		Example: `  eldest bench handover
  eldest bench herd --size 10,100,1000 --html herd.html
  eldest bench all --members 1 --json all.json
  eldest bench forwarding --regime unary-100B,bidi-stream-4KiB --size 1,64
  eldest bench suspensions --regime hogs --for 1m --rounds 10 --contender eldest-heartbeat-1s
  eldest bench crash --endpoints etcd1:2379,etcd2:2379,etcd3:2379 --processes 4`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listScenarios(cmd.OutOrStdout(), cli.WantsJSON(cmd))
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return cli.Usagef("no scenario %q; did you mean %q?", args[0], near[0])
			}
			_, err := bench.Named(args[0])
			return cli.Exit(cli.ExitUsage, err)
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	// Replaces the --json of all commands, whose usage text does not apply here.
	cmd.Flags().Bool("json", false, "list the scenarios as JSON; of one that measures, --json names a file")
	cmd.AddGroup(&cobra.Group{ID: "scenarios", Title: "Scenarios:"}, &cobra.Group{ID: othersGroup, Title: "Other commands:"})
	for _, s := range bench.Scenarios() {
		long := strings.ToUpper(s.Summary[:1]) + s.Summary[1:] + ".\n"
		if len(s.Contenders) > 0 {
			long += "\nContenders:\n" + figures.Glossary(s.Contenders, "  ") + "\n"
		}
		if len(s.Regimes) > 0 {
			long += "\nRegimes:\n" + figures.Glossary(s.Regimes, "  ") + "\n"
		}
		long += "\nMetrics:\n" + figures.Glossary(s.Metrics, "  ") + "\n"
		cmd.AddCommand(measuring(&cobra.Command{Use: s.Name, Short: s.Summary, Long: long + benchHelp}, s.Defaults, s))
	}
	cmd.AddCommand(measuring(&cobra.Command{
		Use: "all", Short: "Run all scenarios, one after another",
		Long: `Runs all scenarios, one after another, on one cluster. Flags that do not apply to a
scenario are ignored there; flags that are not given have each scenario's own default.
The file of --json is written again after each scenario.
` + benchHelp,
	}, bench.Options{}, bench.Scenarios()...), newBenchReportCmd(), &cobra.Command{
		Use: "list", GroupID: othersGroup, Short: "List the scenarios", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listScenarios(cmd.OutOrStdout(), cli.WantsJSON(cmd))
		},
	}, &cobra.Command{
		Use: "worker", Short: "Host candidates and observers of a benchmark", Hidden: true, Args: cobra.NoArgs, RunE: runBenchWorker,
	})
	cmd.AddCommand(newBenchPeersCmd(runPeersProgram))
	return cmd
}

// measuring makes a command measure scenarios, with the defaults that its help shows.
func measuring(cmd *cobra.Command, defaults bench.Options, scenarios ...bench.Scenario) *cobra.Command {
	cmd.GroupID, cmd.Args = "scenarios", cobra.MaximumNArgs(1)
	f := addBenchFlags(cmd, defaults, scenarios)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.settle(cmd, args); err != nil {
			return err
		}
		return runBench(cmd, f, scenarios)
	}
	return cmd
}

// listScenarios writes a line for each scenario, or an array for programs.
func listScenarios(w io.Writer, asJSON bool) error {
	type row struct {
		Scenario string   `json:"scenario"`
		Summary  string   `json:"summary"`
		Rounds   int      `json:"rounds"`
		Sizes    []int    `json:"sizes,omitempty"`
		TTLs     []string `json:"ttls,omitempty"`
		Load     int      `json:"load,omitempty"`
		// The terms used in the results; no contenders means those of the other scenarios.
		Contenders []bench.Term `json:"contenders,omitempty"`
		Regimes    []bench.Term `json:"regimes,omitempty"`
		Metrics    []bench.Term `json:"metrics,omitempty"`
	}
	rows, lines := []row{}, tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range bench.Scenarios() {
		r := row{s.Name, s.Summary, s.Defaults.Rounds, s.Defaults.Sizes, nil, s.Defaults.Load, s.Contenders, s.Regimes, s.Metrics}
		for _, ttl := range s.Defaults.TTLs {
			r.TTLs = append(r.TTLs, ttl.String())
		}
		rows = append(rows, r)
		fmt.Fprintf(lines, "  %s\t%s\n", s.Name, s.Summary)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(rows)
	}
	return lines.Flush()
}

// runBenchWorker reads the connection flags from stdin, and hosts the candidates and observers that
// the run requests, until stdin ends.
func runBenchWorker(cmd *cobra.Command, _ []string) error {
	in := bufio.NewReader(cmd.InOrStdin())
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the connection flags: %w", err)
	}
	var access connect.Flags
	if err := json.Unmarshal(line, &access); err != nil {
		return fmt.Errorf("the connection flags: %w", err)
	}
	contender.KeeperWith = line
	cfg, err := access.Config()
	if err != nil {
		return err
	}
	return bench.Work(cmd.Context(), bench.Site{Client: *cfg}, in, cmd.OutOrStdout())
}

func newBenchReportCmd() *cobra.Command {
	var html, svg string
	cmd := &cobra.Command{
		Use: "report FILE...", GroupID: othersGroup,
		Short: "Render stored JSON again, without measuring",
		Long: `Reads files that --json wrote and shows their tables, or with --html writes one page
with a chapter for each run. With --json it writes all runs as one JSON object. With --svg
it writes each picture to a file of its own, for other documents.

Exit codes: 0 done; 1 failed; 2 bad usage, or a file that is no benchmark's.`,
		Example: `  eldest bench report handover.json crash.json --html page.html
  eldest bench report *.json --json > all.json
  eldest bench report all.json --svg pictures`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Missing(cmd, "file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs []*bench.Report
			for _, path := range args {
				more, err := readRuns(path)
				if err != nil {
					return cli.Exit(cli.ExitUsage, fmt.Errorf("%s: %w", path, err))
				}
				runs = append(runs, more...)
			}
			if svg != "" {
				if err := writePictures(svg, runs); err != nil {
					return err
				}
			}
			f := paperFlags{html: html}
			if cli.WantsJSON(cmd) {
				f.json = toStdout
			}
			papers, err := openBenchPapers(cmd, f)
			for _, r := range runs {
				if err == nil {
					err = papers.add(r)
				}
			}
			return errors.Join(err, papers.close())
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write a page with pictures to `FILE`")
	cmd.Flags().StringVar(&svg, "svg", "", "write the pictures to `DIR`, one file each")
	return cmd
}

func readRuns(path string) ([]*bench.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return figures.Read(file)
}

// writePictures writes SVG files to a directory, which it creates if it does not exist.
func writePictures(dir string, runs []*bench.Report) error {
	files, err := figures.Files(runs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.SVG), 0o644); err != nil {
			return err
		}
	}
	return nil
}
