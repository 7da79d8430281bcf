package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// commands is the list of subcommands, in the order of --help. Whoever adds a
// command adds its line here and nothing else in this file.
var commands = []func() *cobra.Command{
	newDemoCmd,
	newServiceCmd,
	newBenchCmd,
	newChaosCmd,
	newEtcdCmd,
	newCampaignCmd,
	newRunCmd,
	newKeeperCmd,
	newObserveCmd,
	newLeaderCmd,
	newListCmd,
	newResignCmd,
	newTransferCmd,
	newTraceCmd,
}

// streams are the process's standard streams, so that tests can run a command
// without one.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and returns the exit code. It blocks until the
// command is done; the end of ctx asks the command to end.
func run(ctx context.Context, args []string, std streams) int {
	started := false
	root := newRootCmd(&started)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)

	cmd, err := root.ExecuteContextC(ctx)
	code, err := exitCode(err, started)
	if err != nil {
		// Whatever it quotes: a line of ours that moves the cursor is not one.
		fmt.Fprintf(std.err, "%s: %s\n", cmd.CommandPath(), plain.Lines(err.Error()))
	}
	if code == exitUsage && err != nil { // and not the code of another program, passed on
		fmt.Fprintf(std.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

// newRootCmd builds the whole tree. *started becomes true when a command's own
// code begins to run.
func newRootCmd(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "eldest",
		Short: "Leader election on raw etcd primitives",
		Long: `eldest elects leaders on etcd: the candidate whose key is the oldest leads.

"eldest demo" shows the whole protocol on a cluster of its own.`,
		// run prints errors, once and with the exit code in view; the usage
		// text after each failed request would bury the reason.
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.Version = version()
	root.SetVersionTemplate("eldest {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().Bool("json", false, "write JSON for programs instead of tables for people")
	for _, newCmd := range commands {
		root.AddCommand(newCmd())
	}
	markStart(root, started)
	return root
}

// wantsJSON reports whether --json was given.
func wantsJSON(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("json")
	return err == nil && on
}

// unknownCommand is an error of usage that names what was probably meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return usageErrorf("unknown command %q; did you mean %q?", name, near[0])
	}
	return usageErrorf("unknown command %q", name)
}

// markStart wraps every RunE so that errors of parsing and of running can be
// told apart, whichever of cobra's checks the former come from.
func markStart(cmd *cobra.Command, started *bool) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markStart(sub, started)
	}
}

// version says what was built, and with which etcd.
func version() string {
	built, etcd := "(devel)", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			built = info.Main.Version
		}
		for _, module := range info.Deps {
			if module.Path == "go.etcd.io/etcd/server/v3" {
				etcd = module.Version
			}
		}
	}
	return fmt.Sprintf("%s (etcd %s)", built, etcd)
}
