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

// heedSignals makes a benchmark end cleanly on signals, because it may write to a cluster that
// others use. The end of the terminal (SIGHUP, unless nohup ignores it) ends the command's context
// as Ctrl-C does, and the end of the output's reader (SIGPIPE) ends nothing. When the context ends,
// a message is printed, because the clean-up takes a moment: the next signal ends the process at
// once, and the remaining keys are deleted when their leases expire.
func heedSignals(cmd *cobra.Command) (stop func()) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, unhook := cmd.Context(), func() {}
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, unhook = signal.NotifyContext(ctx, syscall.SIGHUP)
		cmd.SetContext(ctx)
	}
	told := context.AfterFunc(ctx, func() {
		unhook() // the second signal kills the process
		start := ""
		if cli.Drawable(cmd.ErrOrStderr()) != nil {
			start = cli.ClearLine
		}
		fmt.Fprintln(cmd.ErrOrStderr(), start+"cleaning up; signal again to stop at once")
	})
	return func() {
		told()
		unhook()
		signal.Stop(pipe)
	}
}
