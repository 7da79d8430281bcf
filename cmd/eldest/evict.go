package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/keys"
)

// formerName is the deprecated alias of the command: leaders resign, operators evict.
const formerName = "resign"

func newEvictCmd() *cobra.Command {
	var conn *connect.Flags
	var yes bool
	cmd := &cobra.Command{
		Use:     "evict ELECTION [KEY]",
		Aliases: []string{formerName},
		Short:   "Remove the leader, or another candidate, from the queue",
		Long: `Removes the leader's key from an election, or that of the candidate named by KEY:
a key as "eldest list" shows it, or only the lease in hex. The candidate is notified at
once, and if it led, the next one leads.

It shows what it will do and asks for confirmation; --yes skips that. Only the key that was
shown is removed: a candidate that left and registered again meanwhile is not removed.
` + valueHelp + `
With --json the result is an object with election, key, lease, token, led, removed,
and next (the key that leads now) where the leader was removed.

Exit codes: 0 removed; 1 failed, answered with no, or the key was replaced
meanwhile; 2 bad usage, or no terminal to ask for confirmation; 4 no candidate leads, or
the candidate is not in the queue.
` + connect.Help,
		Example: `  eldest evict nightly-jobs
  eldest evict nightly-jobs 694d9a3f2c1b4e07 --yes`,
		Args: cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.CalledAs() == formerName {
				cli.ToStderr(cmd)(formerName + " is deprecated: the name of this command is evict")
			}
			key := ""
			if len(args) == 2 {
				key = args[1]
			}
			return runEvict(cmd, conn, yes, args[0], key)
		},
	}
	conn = connect.AddFlags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func runEvict(cmd *cobra.Command, conn *connect.Flags, yes bool, name, key string) error {
	if err := keys.Check(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	// This is checked before anything is sent, so that a script always fails, and at once.
	if !yes && !cli.OnTerminal(cmd.InOrStdin()) {
		return cli.Exit(cli.ExitUsage, cli.Advise(errors.New("stdin is not a terminal, so the command cannot ask for confirmation"), "use --yes to remove the key without it"))
	}
	var plan operate.Removal
	// The limit of once is for requests only: the question to the user has none.
	if err := once(cmd, conn, name, func(ctx context.Context, client *clientv3.Client) (err error) {
		plan, err = operate.PlanRemoval(ctx, client, name, key, conn.Namespace)
		return err
	}); err != nil {
		return err
	}
	// This is written to stderr like the question, so that stdout has only the result.
	fmt.Fprint(cmd.ErrOrStderr(), described(plan))
	if !yes {
		if err := cli.Confirm(cmd); err != nil {
			return err
		}
	}
	return once(cmd, conn, name, func(ctx context.Context, client *clientv3.Client) error {
		switch err := plan.CarryOut(ctx, client); {
		case errors.Is(err, eldest.ErrOutcomeUnknown):
			return cli.Exit(cli.ExitFailed, cli.Advise(fmt.Errorf("%w; the key may have been removed nevertheless", conn.Advise(err)), "check with eldest list"))
		case err != nil:
			return err
		}
		return show(cmd, plan, func(w io.Writer) { _, _ = fmt.Fprintf(w, "removed %s\n", cli.Printable(plan.Key)) })
	})
}

// described renders what a removal will do.
func described(r operate.Removal) string {
	who, after := "the leader", "After that no candidate leads: the queue is empty."
	switch {
	case !r.Led:
		who, after = fmt.Sprintf("candidate number %d", r.Ahead+1), "The leader does not change."
	case r.Next != "":
		after = fmt.Sprintf("After that %s leads.", cli.Printable(r.Next))
	}
	return fmt.Sprintf("This removes %s of %s:\n  key %s\n  token %d\n  value %s\n%s\n", who, cli.Printable(r.Election),
		cli.Printable(r.Key), r.Token, operate.ShownValue(r.Value), after)
}
