package lab

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

// Commands returns the laboratory's commands. node is the command that runs one node of a service;
// "eldest service" starts each node in a process of its own.
func Commands(node *cobra.Command) []*cobra.Command {
	return slices.Concat(
		cli.Learn.Of(newDemoCmd(), newLabCmd(), newServiceCmd(node), newTraceCmd()),
		cli.Test.Of(newBenchCmd(), newChaosCmd()),
	)
}
