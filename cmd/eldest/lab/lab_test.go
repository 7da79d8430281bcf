package lab

import (
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

func newRootCmd() *cobra.Command {
	root := cli.NewRoot()
	root.AddCommand(Commands(&cobra.Command{Use: "node"})...)
	return root
}

// runLine runs a command line to its end.
func runLine(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Line(t, newRootCmd(), args...)
}
