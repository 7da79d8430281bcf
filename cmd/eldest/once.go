package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

func newLeaderCmd() *cobra.Command {
	return queryCmd(&cobra.Command{
		Use:   "leader ELECTION",
		Short: "Show the leader",
		Long: `Reads the leader of an election once, and prints its key, lease, token and value. With
--json it is one object with election, key, lease, token, mod_revision, value, and
value_base64 where the value is not UTF-8.
` + valueHelp + `
Exit codes: 0 there is a leader; 1 failed; 2 bad usage; 4 no candidate leads, and
nothing is written to stdout.
`,
		Example: `  eldest leader nightly-jobs
  eldest leader nightly-jobs --json | jq -r .value`,
	}, func(ctx context.Context, cmd *cobra.Command, client *clientv3.Client, name string) error {
		leader, err := observe.LeaderOf(ctx, client, name)
		if errors.Is(err, eldest.ErrNoLeader) {
			// An error and not an empty table: scripts test the exit code, and people read the text.
			return cli.Exit(cli.ExitNobody, fmt.Errorf("no candidate leads %s", cli.Printable(name)))
		}
		if err != nil {
			return err
		}
		return show(cmd, struct {
			Election string `json:"election"`
			candidateJSON
		}{name, candidateForJSON(leader)}, func(w io.Writer) {
			table(w, "KEY\tLEASE\tTOKEN\tVALUE", fmt.Sprintf("%s\t%s\t%d\t%s",
				cli.Printable(leader.Key), hexLease(leader.Lease), leader.Token, operate.ShownValue(leader.Value)))
		})
	})
}

func newListCmd() *cobra.Command {
	return queryCmd(&cobra.Command{
		Use:   "list ELECTION",
		Short: "List the queue, the leader first",
		Long: `Lists the candidates of an election in the order in which they will lead: key,
lease, token, the time until the lease expires if it is not renewed, whether the candidate
takes part in transfers (TRANSFER: eldest transfer can ask it to requeue or to drain; "?"
if the user may not read that, or it has just left), and value. With --json it is an array of objects with key,
lease, token, mod_revision, ttl_seconds (negative: the lease has expired), transfer (left
out where it is not known), value, and value_base64 where the value is not UTF-8. An empty
queue is not an error.
` + valueHelp + `
Exit codes: 0 done; 1 failed; 2 bad usage.
`,
		Example: `  eldest list nightly-jobs
  eldest list nightly-jobs --json | jq length`,
	}, func(ctx context.Context, cmd *cobra.Command, client *clientv3.Client, name string) error {
		queue, err := observe.Queue(ctx, client, client, name)
		if err != nil {
			return err
		}
		transfers, err := takingPart(ctx, client, name)
		if err != nil {
			return err
		}
		return showQueue(cmd, queue, transfers)
	})
}

// queuedJSON is one element of "eldest list --json".
type queuedJSON struct {
	candidateJSON
	TTLSeconds int64 `json:"ttl_seconds"`
	Transfer   *bool `json:"transfer,omitempty"`
}

// takingPart returns, by token, whether a candidate takes part in transfers; nil if the user may not
// read that.
func takingPart(ctx context.Context, kv clientv3.KV, name string) (map[eldest.Token]bool, error) {
	queue, err := transfer.Survey(ctx, kv, name)
	switch {
	case connect.Code(err) == codes.PermissionDenied:
		return nil, nil
	case err != nil:
		return nil, err
	}
	transfers := map[eldest.Token]bool{}
	for _, m := range queue.Members {
		transfers[m.Token] = m.TakesPart
	}
	return transfers, nil
}

func showQueue(cmd *cobra.Command, queue []observe.Entry, transfers map[eldest.Token]bool) error {
	objects := make([]queuedJSON, len(queue)) // never null
	rows := []string{"KEY\tLEASE\tTOKEN\tTTL\tTRANSFER\tVALUE"}
	for i, e := range queue {
		objects[i] = queuedJSON{candidateJSON: candidateForJSON(e.Candidate), TTLSeconds: int64(e.TTL / time.Second)}
		left, part := e.TTL.String(), "?"
		if e.TTL < 0 { // a lease can expire between the two requests
			left = "expired"
		}
		// A candidate that left after the first read is not in the second one.
		if takesPart, known := transfers[e.Token]; known {
			objects[i].Transfer = new(takesPart)
			part = map[bool]string{true: "yes", false: "no"}[takesPart]
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s",
			cli.Printable(e.Key), hexLease(e.Lease), e.Token, left, part, operate.ShownValue(e.Value)))
	}
	return show(cmd, objects, func(w io.Writer) { table(w, rows...) })
}

// queryCmd completes a command that sends one query about an election to etcd.
func queryCmd(cmd *cobra.Command, ask func(context.Context, *cobra.Command, *clientv3.Client, string) error) *cobra.Command {
	conn := connect.AddFlags(cmd)
	cmd.Long += connect.Help
	cmd.Args, cmd.ValidArgsFunction = cli.Arguments, cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return once(cmd, conn, args[0], func(ctx context.Context, client *clientv3.Client) error { return ask(ctx, cmd, client, args[0]) })
	}
	return cmd
}

// once connects to etcd, calls ask and returns. The context of ask ends after --command-timeout; a
// failure of ask is explained to the user.
func once(cmd *cobra.Command, conn *connect.Flags, name string, ask func(context.Context, *clientv3.Client) error) error {
	if err := keys.Check(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := conn.Resolve(cmd); err != nil {
		return err
	}
	// One limit for everything, including the login.
	ctx, cancel := context.WithTimeout(cmd.Context(), conn.CommandTimeout)
	defer cancel()
	client, err := conn.Dial(ctx)
	if err == nil {
		err = ask(ctx, client)
		_ = client.Close()
	}
	return conn.Explain(cmd.Context(), err)
}

// show writes the result of a command: v with --json, else what text writes.
func show(cmd *cobra.Command, v any, text func(io.Writer)) error {
	var b strings.Builder
	if cli.WantsJSON(cmd) {
		b.WriteString(cli.JSONLine(v))
	} else {
		text(&b)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// table writes rows, whose cells are separated by tabs.
func table(w io.Writer, rows ...string) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(tw, row)
	}
	_ = tw.Flush()
}
