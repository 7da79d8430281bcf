package lab

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

// Commands are what eldest mounts. node is the command that runs one node of a service,
// which "eldest service" starts as processes.
func Commands(node *cobra.Command) []*cobra.Command {
	return slices.Concat(
		cli.Learn.Of(newDemoCmd(), newServiceCmd(node), newTraceCmd()),
		cli.Test.Of(newBenchCmd(), newChaosCmd()),
	)
}
