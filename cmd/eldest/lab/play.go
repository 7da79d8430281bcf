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

// exitInterrupted is what shells report for a program that SIGINT ended: a play
// that was interrupted has judged nothing, so 0 would claim too much.
const exitInterrupted = 130

// runPlay runs a play until it is over, or a signal comes, and turns its error into an
// exit code. It sets by which executable processes are started and for whom it is told;
// invalid is what play returns for flags that cannot work.
func runPlay(cmd *cobra.Command, cfg *scenario.Config, invalid error, play func(context.Context) error) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()

	// Should the reader go away, the play ends as it does for a signal.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	cfg.Executable, cfg.Out, cfg.JSON, cfg.Style = executable, out, cli.WantsJSON(cmd), story.StyleOf(out, os.Getenv)
	err = play(cmd.Context())
	switch {
	case errors.Is(err, invalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil && cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case errors.Is(err, scenario.ErrViolated):
		return cli.Exit(cli.ExitFailed, nil)
	}
	return err
}
