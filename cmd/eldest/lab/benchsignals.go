package lab

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"
)

// heedSignals has a benchmark end in good order whoever ends it: it writes to clusters
// that may be somebody else's. The end of the terminal (SIGHUP, unless nohup has it
// ignored) ends the command's context as Ctrl-C does, and a reader that went away
// (SIGPIPE) ends nothing. What ends it says so, because tidying up takes a moment: the
// next signal gives up at once, and what is left ends with its leases.
func heedSignals(cmd *cobra.Command) (stop func()) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, unhook := cmd.Context(), func() {}
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, unhook = signal.NotifyContext(ctx, syscall.SIGHUP)
		cmd.SetContext(ctx)
	}
	told := context.AfterFunc(ctx, func() {
		unhook() // the second one kills
		start := ""
		if cli.Drawable(cmd.ErrOrStderr()) != nil {
			start = cli.ClearLine
		}
		fmt.Fprintln(cmd.ErrOrStderr(), start+"tidying up; again to give up")
	})
	return func() {
		told()
		unhook()
		signal.Stop(pipe)
	}
}
