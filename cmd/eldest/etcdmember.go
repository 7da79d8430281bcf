package main

import (
	"errors"
	"flag"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
)

// newEtcdMemberCmd is hidden: it is for programs that start members one by one
// and talk to them over stdin and stdout, see internal/memberproc.
func newEtcdMemberCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "member",
		Short:  "Run one member, controlled by stdin and stdout",
		Hidden: true,
		// Its flags are memberproc's, so that both commands have the same.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := memberproc.Run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			if errors.Is(err, flag.ErrHelp) {
				return cli.Usagef("see the flags in internal/memberproc")
			}
			return err
		},
	}
}
