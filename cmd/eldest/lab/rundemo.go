package lab

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// exitInterrupted is what shells report for a program that SIGINT ended: a run that was
// interrupted has judged nothing, so 0 would claim too much.
const exitInterrupted = 130

// runDemo runs a demo until it is over, or a signal comes, and turns its error into an exit
// code. It fills in by which executable processes are started and where the demo is told.
func runDemo(cmd *cobra.Command, cfg *scenario.Config, run func(context.Context) error) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	// Should the reader of the output go away, the demo ends as it does for a signal.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	out := cmd.OutOrStdout()
	cfg.Executable, cfg.Out, cfg.JSON, cfg.Style = executable, out, cli.WantsJSON(cmd), story.StyleOf(out, os.Getenv)
	switch err = run(cmd.Context()); {
	case errors.Is(err, scenario.ErrInvalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil && cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case errors.Is(err, scenario.ErrViolated):
		return cli.Exit(cli.ExitFailed, nil)
	}
	return err
}
