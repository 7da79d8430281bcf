package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

// resignFlags are the flags of "eldest resign".
type resignFlags struct {
	conn *connect.Flags
	yes  bool
}

func newResignCmd() *cobra.Command {
	var f resignFlags
	cmd := &cobra.Command{
		Use:   "resign ELECTION [KEY]",
		Short: "Remove the leader, or another candidate, from the queue",
		Long: `Removes the leader's key from an election, or that of the candidate named by KEY:
a key as "eldest list" shows it, or only the lease in hex. The candidate is told at
once, and if it led, the next one leads.

It shows what it will do and asks; --yes skips the question. The key is removed in
the life that was shown and in no other: a candidate that left meanwhile and came
back is left alone.

` + valueHelp + `

With --json the result is an object with election, key, lease, token, led, removed,
and next (the key that leads now) where the leader was removed.

Exit codes: 0 removed; 1 failed, answered with no, or the key was replaced
meanwhile; 2 bad usage, or a question without a terminal; 4 nobody leads, or the
candidate is not in the queue.
` + connect.Help,
		Example: `  eldest resign nightly-jobs
  eldest resign nightly-jobs 694d9a3f2c1b4e07 --yes`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := ""
			if len(args) == 2 {
				key = args[1]
			}
			return runResign(cmd, f, args[0], key)
		},
	}
	f.conn = connect.AddFlags(cmd)
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

func runResign(cmd *cobra.Command, f resignFlags, name, key string) error {
	if err := keys.Check(name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	// Before anything is sent, so that a script fails at once and not by chance.
	if !f.yes && !cli.OnTerminal(cmd.InOrStdin()) {
		return cli.Usagef("stdin is no terminal, so nobody can be asked; say --yes to remove the key without a question")
	}
	var plan removal
	// The question is no request: it may take as long as it takes.
	if err := once(cmd, f.conn, name, func(ctx context.Context, client *clientv3.Client) (err error) {
		plan, err = planRemoval(ctx, client, name, key, f.conn.Namespace)
		return err
	}); err != nil {
		return err
	}
	// On stderr like the question, so that stdout holds the result alone.
	fmt.Fprint(cmd.ErrOrStderr(), plan.describe())
	if !f.yes {
		if err := cli.Confirm(cmd); err != nil {
			return err
		}
	}
	return once(cmd, f.conn, name, func(ctx context.Context, client *clientv3.Client) error {
		if err := plan.remove(ctx, client, f.conn); err != nil {
			return err
		}
		return plan.report(cmd.OutOrStdout(), cli.WantsJSON(cmd))
	})
}

// removal is what "eldest resign" will do, as of the moment it was planned.
type removal struct {
	name string // of the election
	// target is the candidate in the one life that may be removed.
	// Invariant: target.Token > 0.
	target eldest.Candidate
	led    bool
	ahead  int    // how many stand before the target
	next   string // the key behind the target; "" if there is none
}

// planRemoval finds the candidate that is meant: the leader, or the one with the
// given key or lease.
func planRemoval(ctx context.Context, kv clientv3.KV, name, key, namespace string) (removal, error) {
	queue, err := observe.Queue(ctx, kv, nil, name)
	if err != nil {
		return removal{}, err
	}
	if len(queue) == 0 {
		return removal{}, cli.Exit(cli.ExitNobody, fmt.Errorf("nobody leads %s: the queue is empty, there is nothing to remove", cli.Printable(name)))
	}
	for i, e := range queue {
		if key != "" && !names(key, e.Candidate, namespace) {
			continue
		}
		plan := removal{name: name, target: e.Candidate, led: i == 0, ahead: i}
		if i+1 < len(queue) {
			plan.next = queue[i+1].Key
		}
		return plan, nil
	}
	return removal{}, cli.Exit(cli.ExitNobody, fmt.Errorf("%s is not in the queue of %s; eldest list shows who is", cli.Printable(key), cli.Printable(name)))
}

// names reports whether the user's word for a candidate means c: its key, with or
// without the namespace, or its lease.
func names(word string, c eldest.Candidate, namespace string) bool {
	return word == c.Key || word == namespace+c.Key || strings.EqualFold(word, hexLease(c.Lease))
}

// describe says what carryOut will do.
func (r removal) describe() string {
	var b strings.Builder
	who := fmt.Sprintf("candidate number %d", r.ahead+1)
	if r.led {
		who = "the leader"
	}
	fmt.Fprintf(&b, "This removes %s of %s:\n  key %s\n  token %d\n  value %s\n", who, cli.Printable(r.name),
		cli.Printable(r.target.Key), r.target.Token, shownValue(r.target.Value))
	switch {
	case r.led && r.next != "":
		fmt.Fprintf(&b, "After that %s leads.\n", cli.Printable(r.next))
	case r.led:
		b.WriteString("After that nobody leads: the queue is empty.\n")
	default:
		b.WriteString("The leader stays.\n")
	}
	return b.String()
}

// remove is carryOut with a failure that says whether it is certain.
func (r removal) remove(ctx context.Context, kv clientv3.KV, conn *connect.Flags) error {
	err := r.carryOut(ctx, kv)
	if err != nil && connect.Silent(err) {
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%w. The key may have been removed all the same; eldest list shows it", conn.Advise(err)))
	}
	return err
}

// carryOut deletes the key in one transaction, if it is still in the life that was
// shown. txn.Leave does the same for a candidate that leaves, to whom it is all the
// same whether it was gone already; here the user is told.
func (r removal) carryOut(ctx context.Context, kv clientv3.KV) error {
	guard := txn.Guard{Election: r.name, Key: r.target.Key, Token: r.target.Token}
	resp, err := kv.Txn(ctx).
		If(guard.Compare()).
		Then(clientv3.OpDelete(guard.Key)).
		Else(clientv3.OpGet(guard.Key, clientv3.WithKeysOnly())).
		Commit()
	switch {
	case err != nil:
		return err
	case resp.Succeeded:
		return nil
	}
	// The guard refused: gone, or there again in another life.
	found := resp.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return cli.Exit(cli.ExitNobody, fmt.Errorf("%s had left by itself when it was to be removed", cli.Printable(guard.Key)))
	}
	return fmt.Errorf("%s was replaced meanwhile: it now has token %d, not %d; nothing was removed",
		cli.Printable(guard.Key), found[0].CreateRevision, guard.Token)
}

// report tells that it was done.
func (r removal) report(w io.Writer, asJSON bool) error {
	text := fmt.Sprintf("removed %s\n", cli.Printable(r.target.Key))
	if asJSON {
		next := r.next
		if !r.led {
			next = ""
		}
		text = jsonLine(struct {
			Election string       `json:"election"`
			Key      string       `json:"key"`
			Lease    string       `json:"lease"`
			Token    eldest.Token `json:"token"`
			Led      bool         `json:"led"`
			Removed  bool         `json:"removed"`
			Next     string       `json:"next,omitempty"`
		}{r.name, r.target.Key, hexLease(r.target.Lease), r.target.Token, r.led, true, next})
	}
	_, err := io.WriteString(w, text)
	return err
}
