package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab"
)

// run executes one command line and returns the exit code. It blocks until the command is done. When
// ctx ends, the command is asked to end.
func run(ctx context.Context, args []string, std cli.Streams) int {
	return cli.Execute(ctx, newRootCmd(), args, std)
}

// newRootCmd builds the whole command tree. A new command is added only here or in package lab.
func newRootCmd() *cobra.Command {
	root := cli.NewRoot()
	root.AddCommand(cli.Use.Of(newCampaignCmd(), newRunCmd(), newObserveCmd(), newLeaderCmd())...)
	root.AddCommand(cli.Operate.Of(newListCmd(), newTransferCmd(), newEvictCmd(), newEtcdCmd())...)
	root.AddCommand(lab.Commands(newServiceNodeCmd())...)
	root.AddCommand(cli.About.Of(newVersionCmd())...)
	root.AddCommand(newKeeperCmd())
	return root
}
