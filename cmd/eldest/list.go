package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

func newListCmd() *cobra.Command {
	var conn *connect.Flags
	cmd := &cobra.Command{
		Use:   "list ELECTION",
		Short: "List the queue, the leader first",
		Long: `Lists the candidates of an election in the order in which they will lead: key,
lease, token, the time that is left to the lease unless it is renewed, whether it
takes part in transfers (ASKS: eldest transfer can ask it to step back or to retire;
"?" where the user may not read that), and value. With --json it is an array of objects
with key, lease, token, mod_revision, ttl_seconds (negative: the lease is gone), asks
(left out where it is not known), value, and value_base64 where the value is not UTF-8.
An empty queue is no failure.

` + valueHelp + `
` + nodeHelp + `

Exit codes: 0 done; 1 failed; 2 bad usage.
` + connect.Help,
		Example: `  eldest list nightly-jobs
  eldest list nightly-jobs --json | jq length`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return once(cmd, conn, args[0], func(ctx context.Context, client *clientv3.Client) error {
				queue, err := observe.Queue(ctx, client, client, args[0])
				if err != nil {
					return err
				}
				asks, err := whoAsks(ctx, client, args[0])
				if err != nil {
					return err
				}
				return printQueue(cmd.OutOrStdout(), queue, asks, cli.WantsJSON(cmd))
			})
		},
	}
	conn = connect.AddFlags(cmd)
	return cmd
}

// queuedJSON is one element of "eldest list --json".
type queuedJSON struct {
	candidateJSON
	TTLSeconds int64 `json:"ttl_seconds"`
	Asks       *bool `json:"asks,omitempty"`
}

// whoAsks returns the lives of those who take part in transfers; nil if the user may not
// know.
func whoAsks(ctx context.Context, kv clientv3.KV, name string) (map[eldest.Token]bool, error) {
	queue, err := transfer.Survey(ctx, kv, name)
	switch {
	case connect.Code(err) == codes.PermissionDenied:
		return nil, nil
	case err != nil:
		return nil, err
	}
	asks := map[eldest.Token]bool{}
	for _, m := range queue.Members {
		asks[m.Token] = m.Asks
	}
	return asks, nil
}

func printQueue(w io.Writer, queue []observe.Entry, asks map[eldest.Token]bool, asJSON bool) error {
	if asJSON {
		rows := make([]queuedJSON, len(queue)) // never null
		for i, e := range queue {
			rows[i] = queuedJSON{candidateJSON: candidateForJSON(e.Candidate), TTLSeconds: int64(e.TTL / time.Second)}
			if yes := asks[e.Token]; asks != nil {
				rows[i].Asks = &yes
			}
		}
		_, err := io.WriteString(w, jsonLine(rows))
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "KEY\tLEASE\tTOKEN\tTTL\tASKS\tVALUE")
	for _, e := range queue {
		// etcd counts in whole seconds; a lease can go between the two questions.
		left := e.TTL.String()
		if e.TTL < 0 {
			left = "gone"
		}
		part := "no"
		if asks == nil {
			part = "?"
		} else if asks[e.Token] {
			part = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\n", cli.Printable(e.Key), hexLease(e.Lease), e.Token, left, part, shownValue(e.Value))
	}
	return tw.Flush()
}
