//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newRunCmd says why there is none here: a program and its children are ended as a
// process group, by a process that knows of its parent's death by the end of a pipe.
func newRunCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run a program only while leading (Unix only)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("run needs a Unix, with process groups and signals; eldest campaign stands in elections here, too")
		},
	}
}

func newKeeperCmd() *cobra.Command { return &cobra.Command{Use: "run-keeper", Hidden: true} }
