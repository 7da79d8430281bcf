package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/page"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/sandbox"
	"github.com/eldest-io/eldest/keys"
)

// labFlags are the flags of "eldest lab".
type labFlags struct {
	conn *connect.Flags
	// election is "" if it is not given.
	election string
	// remote means that --endpoints names the cluster.
	remote, write bool

	participants int
	kinds        []string
	play         string

	listen string
	open   bool
	limit  time.Duration

	// box is the sandbox, scenario that of --play, or nil.
	box      sandbox.Config
	scenario *feed.Scenario
}

func newLabCmd() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use:     "lab [ELECTION]",
		Short:   "Show an election in a browser, and break it by hand",
		Long:    labHelp + connect.Help,
		Example: labExample,
		Args:    cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.election = args[0]
				if err := keys.Check(f.election); err != nil {
					return cli.Exit(cli.ExitUsage, err)
				}
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			return runLab(cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false // those of the lab come first
	fl.IntVar(&f.box.Members, "members", sandbox.DefaultMembers, "members of the etcd cluster that it starts: 1, 3 or 5")
	fl.IntVar(&f.participants, "participants", 3, fmt.Sprintf("candidates at the beginning, each a process: 0 to %d", sandbox.MostParticipants))
	cli.TTLVar(fl, &f.box.TTL, sandbox.DefaultTTL, fmt.Sprintf("time to live of their leases, in whole seconds, %v to %v", sandbox.MinTTL, sandbox.MaxTTL))
	fl.StringSliceVar(&f.kinds, "kind", nil, "their kinds, in turn; comma separated or repeated: "+kindNames()+" (default: eldest)")
	fl.StringVar(&f.play, "play", "", "play the scenario in this `FILE` at the beginning")
	fl.StringVar(&f.listen, "listen", page.DefaultListen, "where the page is served: PORT, on 127.0.0.1, or HOST:PORT; port 0 is a free one")
	fl.BoolVar(&f.open, "open", false, "open the page in the system's browser")
	fl.DurationVar(&f.limit, "for", 0, "end after this time (default: run until a signal)")
	fl.BoolVar(&f.write, "write", false, "with --endpoints: permit evictions and transfers")
	f.conn = connect.AddFlags(cmd)
	f.conn.Explicit = true
	fl.Lookup("endpoints").Usage = "show this cluster instead of starting one; only as a flag, never from the environment"
	fl.Lookup("endpoints").DefValue = "[]" // shown as empty
	return cmd
}

// kindNames lists the kinds of participants.
func kindNames() string {
	var names []string
	for _, kind := range feed.Kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// check completes and checks the flags, before anything is started.
func (f *labFlags) check(cmd *cobra.Command) error {
	fl := cmd.Flags()
	if err := cli.Positive(fl, "for"); err != nil {
		return err
	}
	if f.remote = fl.Changed("endpoints"); f.remote {
		for _, name := range []string{"members", "participants", "ttl", "kind", "play"} {
			if fl.Changed(name) {
				return cli.Usagef("--%s does not apply to the cluster of --endpoints", name)
			}
		}
		return f.conn.Resolve(cmd)
	}
	for _, name := range append([]string{"write"}, connect.FlagNames...) {
		if fl.Changed(name) {
			return cli.Usagef("--%s is for a cluster that --endpoints names", name)
		}
	}
	if err := f.box.Check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	switch {
	case f.participants < 0 || f.participants > sandbox.MostParticipants:
		return cli.Usagef("--participants %d: want 0 to %d", f.participants, sandbox.MostParticipants)
	case fl.Changed("kind") && len(f.kinds) == 0:
		return cli.Usagef("--kind: names none; want %s", kindNames())
	case fl.Changed("play") && f.play == "":
		return cli.Usagef("--play: names no file")
	}
	if err := f.takeKinds(); err != nil {
		return err
	}
	return f.takeScenario()
}

// takeKinds sets the first participants.
func (f *labFlags) takeKinds() error {
	kinds := []feed.Kind{feed.Eldest}
	if len(f.kinds) > 0 {
		kinds = nil
	}
	for _, name := range f.kinds {
		kind := feed.Kind(strings.TrimSpace(name))
		if !slices.Contains(feed.Kinds, kind) {
			return cli.Usagef("--kind %s: want %s", cli.Printable(name), kindNames())
		}
		kinds = append(kinds, kind)
	}
	f.box.Start = make([]feed.Kind, f.participants)
	for i := range f.box.Start {
		f.box.Start[i] = kinds[i%len(kinds)]
	}
	return nil
}

// maxScenario bounds the file of --play, as the page's server does.
const maxScenario = 1 << 20

// takeScenario reads the file of --play.
func (f *labFlags) takeScenario() error {
	if f.play == "" {
		return nil
	}
	file, err := os.Open(f.play)
	if err != nil {
		return cli.Usagef("--play: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxScenario+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return cli.Usagef("--play: %w", err)
	}
	if len(data) > maxScenario {
		return cli.Usagef("--play %s: the file has more than %d bytes", cli.Printable(f.play), maxScenario)
	}
	f.scenario = &feed.Scenario{}
	if err = feed.Decode(bytes.NewReader(data), f.scenario); err == nil {
		err = f.scenario.Check() // of null, too: it has no steps
	}
	if err != nil {
		return cli.Usagef("--play %s is no scenario, as the page copies it: %w", cli.Printable(f.play), err)
	}
	return nil
}
