package lab

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
)

// Serve runs a participant of "eldest chaos" or "eldest lab" and ends the process, if it was started as
// one; else it returns at once.
func Serve() { participant.Serve() }

// Commands returns the laboratory's commands. node is the command that runs one node of a service;
// "eldest service" starts each node in a process of its own.
func Commands(node *cobra.Command) []*cobra.Command {
	return slices.Concat(
		cli.Learn.Of(newDemoCmd(), newLabCmd(), newServiceCmd(node), newTraceCmd()),
		cli.Test.Of(newBenchCmd(), newChaosCmd()),
	)
}
