package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
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
	var plan removal
	// The limit of once is for requests only: the question to the user has none.
	if err := once(cmd, conn, name, func(ctx context.Context, client *clientv3.Client) (err error) {
		plan, err = planRemoval(ctx, client, name, key, conn.Namespace)
		return err
	}); err != nil {
		return err
	}
	// This is written to stderr like the question, so that stdout has only the result.
	fmt.Fprint(cmd.ErrOrStderr(), plan.describe())
	if !yes {
		if err := cli.Confirm(cmd); err != nil {
			return err
		}
	}
	return once(cmd, conn, name, func(ctx context.Context, client *clientv3.Client) error {
		switch err := plan.carryOut(ctx, client); {
		case err != nil && connect.Silent(err):
			return cli.Exit(cli.ExitFailed, cli.Advise(fmt.Errorf("%w; the key may have been removed nevertheless", conn.Advise(err)), "check with eldest list"))
		case err != nil:
			return err
		}
		return show(cmd, plan, func(w io.Writer) { _, _ = fmt.Fprintf(w, "removed %s\n", cli.Printable(plan.Key)) })
	})
}

// removal describes what "eldest evict" will do, as planned, and then what it has done.
type removal struct {
	Election string       `json:"election"`
	Key      string       `json:"key"`
	Lease    string       `json:"lease"`
	Token    eldest.Token `json:"token"` // of the registration that may be removed
	Led      bool         `json:"led"`
	Removed  bool         `json:"removed"`
	Next     string       `json:"next,omitempty"` // the key behind that of the leader; "" if there is none

	value []byte
	ahead int // the number of candidates before it in the queue
}

// planRemoval finds the candidate to remove: the leader, or the one with the given key or lease.
func planRemoval(ctx context.Context, kv clientv3.KV, name, key, namespace string) (removal, error) {
	queue, err := observe.Queue(ctx, kv, nil, name)
	if err != nil {
		return removal{}, err
	}
	if len(queue) == 0 {
		return removal{}, cli.Exit(cli.ExitNobody, fmt.Errorf("no candidate leads %s: the queue is empty, there is nothing to remove", cli.Printable(name)))
	}
	i := slices.IndexFunc(queue, func(e observe.Entry) bool { return key == "" || names(key, e.Candidate, namespace) })
	if i < 0 {
		return removal{}, cli.Exit(cli.ExitNobody, cli.Advise(fmt.Errorf("%s is not in the queue of %s", cli.Printable(key), cli.Printable(name)), "eldest list shows the candidates"))
	}
	found := queue[i].Candidate
	plan := removal{
		Election: name, Key: found.Key, Lease: hexLease(found.Lease), Token: found.Token, Led: i == 0, Removed: true,
		value: found.Value, ahead: i,
	}
	if plan.Led && len(queue) > 1 {
		plan.Next = queue[1].Key
	}
	return plan, nil
}

// names reports whether word, as the user gave it, is the key of c, with or without the namespace, or
// its lease.
func names(word string, c eldest.Candidate, namespace string) bool {
	return word == c.Key || word == namespace+c.Key || strings.EqualFold(word, hexLease(c.Lease))
}

// describe renders what carryOut will do.
func (r removal) describe() string {
	who, after := "the leader", "After that no candidate leads: the queue is empty."
	switch {
	case !r.Led:
		who, after = fmt.Sprintf("candidate number %d", r.ahead+1), "The leader does not change."
	case r.Next != "":
		after = fmt.Sprintf("After that %s leads.", cli.Printable(r.Next))
	}
	return fmt.Sprintf("This removes %s of %s:\n  key %s\n  token %d\n  value %s\n%s\n", who, cli.Printable(r.Election),
		cli.Printable(r.Key), r.Token, shownValue(r.value), after)
}

// carryOut deletes the key in one transaction, if it still belongs to the registration that was
// shown. txn.Leave does the same for a candidate that leaves, but ignores a key that is already
// deleted; here that is reported to the user.
func (r removal) carryOut(ctx context.Context, kv clientv3.KV) error {
	guard := txn.Guard{Election: r.Election, Key: r.Key, Token: r.Token}
	resp, err := kv.Txn(ctx).
		If(guard.Compare()).
		Then(clientv3.OpDelete(guard.Key)).
		Else(clientv3.OpGet(guard.Key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil || resp.Succeeded {
		return err
	}
	// The comparison failed: the key is deleted, or another registration has created it again.
	found := resp.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return cli.Exit(cli.ExitNobody, fmt.Errorf("%s has left the queue meanwhile; nothing was removed", cli.Printable(guard.Key)))
	}
	return fmt.Errorf("%s was registered again meanwhile: it now has token %d, not %d; nothing was removed",
		cli.Printable(guard.Key), found[0].CreateRevision, guard.Token)
}
