package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// Positive refuses numbers and durations of the named flags that were given as zero or less. It is for
// flags whose default is set where they are used, and is zero in the flag.
func Positive(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		if value := flag.Value.String(); value == "0" || value == "0s" || strings.HasPrefix(value, "-") {
			return Usagef("--%s %s: want more than 0", name, value)
		}
	}
	return nil
}
