package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// Streams are the process's standard streams, so that tests can run a command
// without one.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Execute runs one command line and returns the exit code. It blocks until the command is done. When
// ctx ends, the command is asked to end.
func Execute(ctx context.Context, root *cobra.Command, args []string, std Streams) int {
	started := false
	markStart(root, &started)
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)

	cmd, err := root.ExecuteContextC(ctx)
	code, err := ExitCode(err, started)
	if err != nil && failsInJSON(cmd, args) {
		fmt.Fprint(std.Err, JSONLine(FailureOf(cmd, code, err)))
		return code
	}
	if err != nil {
		// The text may quote untrusted input, which must not control the terminal.
		fmt.Fprintf(std.Err, "%s: %s\n", cmd.CommandPath(), plain.Lines(err.Error()))
	}
	if code == ExitUsage && err != nil { // and not the exit code of another program, passed on
		fmt.Fprintln(std.Err, helpAdvice(cmd))
	}
	return code
}

// WantsJSON reports whether --json was given.
func WantsJSON(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("json")
	return err == nil && on
}

// markStart wraps every RunE so that errors of parsing and of running can be distinguished, whichever
// of cobra's checks the former come from.
func markStart(cmd *cobra.Command, started *bool) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markStart(sub, started)
	}
}
