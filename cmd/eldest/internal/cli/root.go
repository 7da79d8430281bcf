package cli

import "github.com/spf13/cobra"

// Group is a group of commands in --help.
type Group string

// The groups, by the purpose of the commands.
const (
	Use     Group = "use"
	Operate Group = "operate"
	Learn   Group = "learn"
	Test    Group = "test"
	About   Group = "about"
)

// groups are in the order of --help.
var groups = []*cobra.Group{
	{ID: string(Use), Title: "Use elections:"},
	{ID: string(Operate), Title: "Operate them:"},
	{ID: string(Learn), Title: "Learn how they work:"},
	{ID: string(Test), Title: "Test and measure them:"},
	{ID: string(About), Title: "About this command:"},
}

// Of puts commands into the group.
func (g Group) Of(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		command.GroupID = string(g)
	}
	return commands
}

// NewRoot returns the command eldest without subcommands.
func NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "eldest",
		Short: "Leader election on raw etcd primitives",
		Long: `eldest elects leaders on etcd: the candidate whose key is the oldest leads.

"eldest demo" shows the whole protocol on a cluster of its own, and "eldest lab" shows it in
a browser, where you can break it by hand.

With --json a command writes one JSON value to stdout, or one a line if it runs until a
signal ("eldest run": to stderr). A failure is one object, the last line of stderr, with
error, exit_code and, where there is one, advice.`,
		// Execute prints errors, once and with the exit code; the usage text after each failed
		// request would hide the reason.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = Version()
	root.SetVersionTemplate("eldest {{.Version}}\n")
	root.PersistentFlags().Bool("json", false, "write JSON to stdout; a failure is an object on stderr (see eldest --help)")
	root.AddGroup(groups...)
	root.SetHelpCommandGroupID(string(About))
	root.SetCompletionCommandGroupID(string(About))
	return root
}
