package lab

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// exitInterrupted is what shells report for a program that SIGINT ended: a play
// that was interrupted has judged nothing, so 0 would claim too much.
const exitInterrupted = 130

// audience is for whom a play is told, and by which executable its processes are started.
type audience struct {
	executable string
	out        io.Writer
	json       bool
	style      story.Style
}

// runPlay runs a play until it is over, or a signal comes, and turns its error into an
// exit code. invalid and violated are what it returns for flags that cannot work, and
// after a summary that has said what did not hold.
func runPlay(cmd *cobra.Command, invalid, violated error, play func(context.Context, audience) error) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()

	// Should the reader go away, the play ends as it does for a signal.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	err = play(cmd.Context(), audience{executable: executable, out: out, json: cli.WantsJSON(cmd), style: story.StyleOf(out, os.Getenv)})
	switch {
	case errors.Is(err, invalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil && cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case errors.Is(err, violated):
		return cli.Exit(cli.ExitFailed, nil)
	}
	return err
}
