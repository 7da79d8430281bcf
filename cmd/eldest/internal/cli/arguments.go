package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Arguments refuses arguments that do not match the words of cmd.Use, of which one in brackets may be
// left out. A flag ends the words. It is for cobra.Command.Args.
func Arguments(cmd *cobra.Command, args []string) error {
	before, _, _ := strings.Cut(cmd.Use, " -")
	words := strings.Fields(before)[1:]
	switch n := len(args); {
	case n < len(words) && !strings.HasPrefix(words[n], "["):
		return Missing(cmd, strings.ToLower(words[n]))
	case n > len(words):
		return fmt.Errorf("surplus argument %s: %s", Printable(args[len(words)]), usageOf(cmd))
	}
	return nil
}

// Missing returns the error for an argument that is missing; what is its name.
func Missing(cmd *cobra.Command, what string) error {
	return fmt.Errorf("the %s is missing: %s", what, usageOf(cmd))
}

// usageOf returns how a command is called.
func usageOf(cmd *cobra.Command) string {
	return cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
}
