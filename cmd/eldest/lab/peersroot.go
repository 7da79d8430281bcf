package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// NewPeersRoot returns the commands of the program that measures elections of several systems: the one that
// compares them, and those of its processes: participants, and servers that are Go libraries, which are mains.
func NewPeersRoot(all []peer.System, mains map[string]peer.Main) *cobra.Command {
	root := cli.NewRoot()
	group := &cobra.Command{Use: "bench", Short: "Compare elections"}
	group.AddGroup(&cobra.Group{ID: othersGroup, Title: "Commands:"})
	group.AddCommand(newBenchPeersCmd(func(cmd *cobra.Command, f *peersFlags) error { return measurePeers(cmd, f, all) }), &cobra.Command{
		Use: "peers-participant", Short: "Take part in an election that is measured", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Nothing but the participant's lines may be written to stdout, also by libraries.
			out := cmd.OutOrStdout()
			os.Stdout = os.Stderr
			return peers.Participate(cmd.Context(), all, cmd.InOrStdin(), out)
		},
	}, &cobra.Command{
		Use: "peers-server NAME ARGUMENT...", Short: "Run a server of an election that is measured", Hidden: true,
		Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			serve, ok := mains[args[0]]
			if !ok {
				return cli.Usagef("no server %q", args[0])
			}
			return serve(args[1:])
		},
	})
	etcd := &cobra.Command{Use: "etcd", Short: "Run etcd"}
	etcd.AddCommand(NewMemberCmd())
	root.AddCommand(group, etcd)
	return root
}

// NewMemberCmd returns the hidden command "etcd member": programs use it to start members one by one and to
// control them over stdin and stdout, see package memberproc.
func NewMemberCmd() *cobra.Command {
	return &cobra.Command{
		Use: "member FILE", Short: "Run one member, controlled by stdin and stdout", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return memberproc.Run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// measurePeers measures. However it ends, it reports what was measured until then and stops everything
// that it started.
func measurePeers(cmd *cobra.Command, f *peersFlags, all []peer.System) (err error) {
	defer heedSignals(cmd)()
	written := &peers.Report{}
	papers, err := openPeersPapers(cmd, f, written)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, papers.close()) }()
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	o := f.options(all)
	o.Executable = executable
	o.Skip = func(s peers.Skipped) {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped: %s: %s\n", cli.Printable(s.System), cli.Printable(s.Reason))
	}
	show := cli.NewProgress(cmd.ErrOrStderr(), f.progress, func(now bench.Progress, passed time.Duration) string {
		return progressLine("peers", now, false, passed)
	})
	o.Progress = show.Update
	report, err := peers.Run(cmd.Context(), o)
	show.Close()
	if report == nil {
		return err
	}
	report.Setup.Command, report.Setup.Eldest, report.Setup.CPU = commandLine(cmd), cli.Version(), cpuModel()
	plain.Texts(report) // errors may have any text
	*written = *report
	unwritten := papers.write()
	switch {
	case cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, unwritten)
	case len(report.Systems) == 0:
		err = errors.Join(err, errors.New("no system could be started"))
	}
	if failed := report.Hopeless(); len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("all rounds failed: %s", strings.Join(failed, ", ")))
	}
	return errors.Join(err, unwritten)
}
