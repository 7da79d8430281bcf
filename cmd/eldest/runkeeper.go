//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// keeperCommand is how "eldest run" starts itself again.
const keeperCommand = "run-keeper"

// newKeeperCmd is the process that watches over the program of "eldest run".
func newKeeperCmd() *cobra.Command {
	return &cobra.Command{
		Use:    keeperCommand + " ELECTION",
		Short:  "Watch over a program; started by eldest run and by nobody else",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(*cobra.Command, []string) error { return job.Keep() },
	}
}
