package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/page"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// peersFlags are the flags of "bench peers".
type peersFlags struct {
	systems, scenarios, settings []string
	rounds, size                 int
	rest                         time.Duration
	from                         string // a file, "-" for stdin, "" for none
	paperFlags
}

// newBenchPeersCmd returns the command that compares systems. What measures is a program of its own.
func newBenchPeersCmd(measure func(*cobra.Command, *peersFlags) error) *cobra.Command {
	f := &peersFlags{}
	cmd := &cobra.Command{
		Use: "peers", GroupID: othersGroup, Args: cobra.MaximumNArgs(1),
		Short: "Compare Eldest with elections of other systems",
		Long:  peersHelp(),
		Example: `  eldest bench peers --json peers.json --html peers.html
  eldest bench peers --system eldest,zookeeper --scenario crash,cut --setting shortest
  eldest bench peers --rounds 1 --size 50
  eldest bench peers --from peers.json --html peers.html`,
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.addTo(fl)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(fl, args); err != nil {
			return err
		}
		if f.from != "" {
			return reportPeers(cmd, f)
		}
		return measure(cmd, f)
	}
	return cmd
}

func (f *peersFlags) addTo(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.systems, "system", nil, "systems; comma separated or repeated (default: all)")
	fl.StringSliceVar(&f.scenarios, "scenario", nil, "scenarios; comma separated or repeated (default: all)")
	fl.StringSliceVar(&f.settings, "setting", nil, "sets of settings: defaults, shortest (default: both)")
	fl.IntVar(&f.rounds, "rounds", 0, "samples of each system in each scenario (default: each scenario's own)")
	fl.IntVarP(&f.size, "size", "n", peers.DefaultSize, "candidates or observers, in the scenarios that have many")
	fl.DurationVar(&f.rest, "for", peers.DefaultFor, "how long the scenario rest counts")
	f.paperFlags.addTo(fl)
	fl.StringVar(&f.markdown, "markdown", "", "write a Markdown page to `FILE`, and its picture, elections.svg, beside it")
	fl.StringVar(&f.from, "from", "", "render the report that --json wrote to `FILE`; measure nothing")
}

// check completes and checks the flags, before anything is started.
func (f *peersFlags) check(fl *pflag.FlagSet, args []string) error {
	if err := f.settle(fl, args, "json", "html", "markdown"); err != nil {
		return err
	}
	if err := cli.Positive(fl, "rounds", "size", "for"); err != nil {
		return err
	}
	if fl.Changed("from") && f.from == "" {
		return cli.Usagef("--from: names no file")
	}
	for _, name := range []string{"system", "scenario", "setting", "rounds", "size", "for", "progress"} {
		if f.from != "" && fl.Changed(name) {
			return cli.Usagef("--%s does not apply to a report that --from names", name)
		}
	}
	for _, name := range f.systems {
		if !slices.Contains(peer.Names, name) {
			return cli.Usagef("no system %q; there are %s", name, strings.Join(peer.Names, ", "))
		}
	}
	if err := f.options(nil).Check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	return nil
}

// options returns the options for the systems of f among all.
func (f *peersFlags) options(all []peer.System) peers.Options {
	o := peers.Options{Scenarios: f.scenarios, Settings: f.settings, Rounds: f.rounds, Size: f.size, For: f.rest}
	for _, s := range all {
		if len(f.systems) == 0 || slices.Contains(f.systems, s.Name) {
			o.Systems = append(o.Systems, s)
		}
	}
	return o
}

// reportPeers renders a report that was measured before.
func reportPeers(cmd *cobra.Command, f *peersFlags) (err error) {
	in := cmd.InOrStdin()
	if f.from != toStdout {
		file, err := os.Open(f.from)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	report, err := peers.Read(in)
	if err != nil {
		return cli.Exit(cli.ExitUsage, fmt.Errorf("%s: %w", cli.Printable(f.from), err))
	}
	papers, err := openPeersPapers(cmd, f, report)
	if err != nil {
		return err
	}
	return errors.Join(papers.write(), papers.close())
}

// openPeersPapers opens the files; see openPapers. They show what the report has when they are written.
func openPeersPapers(cmd *cobra.Command, f *peersFlags, r *peers.Report) (*papers, error) {
	return openPapers(cmd, f.paperFlags, renderers{
		table:    func(w io.Writer) error { return peers.Table(w, r, styleFor(cmd)) },
		json:     func(w io.Writer) error { return figures.Encode(w, r) },
		html:     func(w io.Writer) error { return page.HTML(w, r) },
		markdown: func(w io.Writer) error { return page.Markdown(w, r) },
		picture: func(w io.Writer) error {
			svg, err := page.Chart(r)
			if err == nil {
				_, err = io.WriteString(w, svg)
			}
			return err
		},
	})
}
