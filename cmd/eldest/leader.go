package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

func newLeaderCmd() *cobra.Command {
	var conn *connect.Flags
	cmd := &cobra.Command{
		Use:   "leader ELECTION",
		Short: "Say who leads",
		Long: `Asks etcd once who leads an election, and prints key, lease, token and value. With
--json it is one object with election, key, lease, token, mod_revision, value, and
value_base64 where the value is not UTF-8.

` + valueHelp + `
` + nodeHelp + `

Exit codes: 0 somebody leads; 1 failed; 2 bad usage; 4 nobody leads, and then
nothing is written to stdout.
` + connect.Help,
		Example: `  eldest leader nightly-jobs
  eldest leader nightly-jobs --json | jq -r .value`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return once(cmd, conn, args[0], func(ctx context.Context, client *clientv3.Client) error {
				leader, err := observe.LeaderOf(ctx, client, args[0])
				if errors.Is(err, eldest.ErrNoLeader) {
					// Not an empty table: scripts test the exit code, people read.
					return cli.Exit(cli.ExitNobody, fmt.Errorf("nobody leads %s", cli.Printable(args[0])))
				}
				if err != nil {
					return err
				}
				return printLeader(cmd.OutOrStdout(), args[0], leader, cli.WantsJSON(cmd))
			})
		},
	}
	conn = connect.AddFlags(cmd)
	return cmd
}

func printLeader(w io.Writer, name string, leader eldest.Leader, asJSON bool) error {
	if asJSON {
		_, err := io.WriteString(w, jsonLine(struct {
			Election string `json:"election"`
			candidateJSON
		}{name, candidateForJSON(leader)}))
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "KEY\tLEASE\tTOKEN\tVALUE")
	fmt.Fprintf(tw, "%s\t%s\t%d\t%s\n", cli.Printable(leader.Key), hexLease(leader.Lease), leader.Token, shownValue(leader.Value))
	return tw.Flush()
}

// once runs a command that asks etcd and is done. ask has a client and a context
// that ends after --command-timeout; its failure is explained to the user.
func once(cmd *cobra.Command, conn *connect.Flags, name string, ask func(context.Context, *clientv3.Client) error) error {
	if err := keys.Check(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := conn.Resolve(cmd); err != nil {
		return err
	}
	// One limit for all of it, logging in included.
	ctx, cancel := context.WithTimeout(cmd.Context(), conn.CommandTimeout)
	defer cancel()
	client, err := conn.Dial(ctx)
	if err == nil {
		err = ask(ctx, client)
		_ = client.Close()
	}
	return conn.Explain(cmd.Context(), err)
}
