package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// transferFlags are the flags of "eldest transfer".
type transferFlags struct {
	conn *connect.Flags
	// to is the user's word for the target: its key or its lease.
	to              string
	order           string
	patience, drain time.Duration
	dryRun          bool
}

// maxPatience bounds --patience and --drain; more is a mistake of units.
const maxPatience = time.Hour

func newTransferCmd() *cobra.Command {
	var f transferFlags
	cmd := &cobra.Command{
		Use:   "transfer ELECTION --to KEY",
		Short: "Hand leadership to a candidate that is named",
		Long: `Hands leadership to the candidate named by --to: a key as "eldest list" shows it, or
only the lease in hex. Nobody is moved from outside: each one is asked, and acts by
itself, so that no two lead and every fencing token is larger than the ones before.

If the target is the first in line, the leader retires and nobody else moves. Else those
between the two step back in the queue first, one after another, each with a new and
larger token; and, with --order keep, everybody behind the target as well, so that the
order among all others stays what it was. With --order pass-by those behind stay where
they are, in front of those who step back. The leader is asked last: until then it leads,
and a transfer that stops half way has moved some of the waiting and nothing else.

Whoever has to move must take part ("eldest list" says who does): candidates of eldest
campaign, run and service node, unless they were started with --no-transfer, and programs
that serve transfers. Programs that use etcd's own election package do not. If one of
those is in the way the transfer is refused before anybody has moved; and so it is if the
target is a node with a priority and one with a higher priority waits as well: it would
give way instead of leading.

--dry-run says what would be done, and does nothing. With --json the result is an object
with election, target, order, dry_run, done, leader and back (who is to retire, and who
is to step back, each with key and token), overtaken, foreign, and, as far as it came,
moved (key, token, and new_token), retired, now_leads; if it was not done error, and
reason and who where it was refused.

Not guaranteed: that the target leads for long, or at all if it leaves while it is being
made room for (the next in line leads then, and the exit code is 1).

Exit codes: 0 done, or the target leads already; 1 failed, or it is not known what came
of it; 2 bad usage; 4 nobody leads, or the target is not in the queue; 6 refused: the
leader leads on, though some may have stepped back.
` + connect.Help,
		Example: `  eldest transfer nightly-jobs --to nightly-jobs/694d9a3f2c1b4e07 --dry-run
  eldest transfer nightly-jobs --to 694d9a3f2c1b4e07 --order pass-by`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.conn = connect.AddFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", "", "the candidate that is to lead: its key, or its lease in hex")
	fl.StringVar(&f.order, "order", transfer.Keep.String(), "keep: the order among all others; pass-by: those behind the target stay, and pass those who step back")
	fl.DurationVar(&f.patience, "patience", transfer.DefaultPatience, "how long to wait for the answer of each one that is asked")
	fl.DurationVar(&f.drain, "drain", transfer.DefaultDrain, "how long the leader may take to end what it does as leader, once it has retired")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
	return cmd
}

// check refuses bad arguments before anything is sent.
func (f *transferFlags) check(name string) (options transfer.Options, err error) {
	if err := keys.Check(name); err != nil {
		return options, cli.Exit(cli.ExitUsage, err)
	}
	options = transfer.Options{Patience: f.patience, Drain: f.drain, GiveWay: nodeGivesWay}
	options.Order, err = transfer.ParseOrder(f.order)
	switch {
	case err != nil:
		return options, cli.Usagef("--order %s: want keep or pass-by", cli.Printable(f.order))
	case f.to == "":
		return options, cli.Usagef("--to is missing: which candidate is to lead? eldest list %s shows their keys", cli.Printable(name))
	case f.patience <= 0 || f.patience > maxPatience:
		return options, cli.Usagef("--patience %v: want more than 0s and at most %v", f.patience, maxPatience)
	case f.drain <= 0 || f.drain > maxPatience:
		return options, cli.Usagef("--drain %v: want more than 0s and at most %v", f.drain, maxPatience)
	}
	return options, nil
}

func (f *transferFlags) run(cmd *cobra.Command, name string) error {
	options, err := f.check(name)
	if err != nil {
		return err
	}
	if err := f.conn.Resolve(cmd); err != nil {
		return err
	}
	report := handover{Election: name, Order: options.Order.String(), DryRun: f.dryRun}
	client, err := f.plan(cmd.Context(), &report, options)
	if client != nil {
		defer func() { _ = client.Close() }()
	}
	if err == nil && !f.dryRun {
		err = f.carryOut(cmd.Context(), client, &report, options)
	}
	var refusal *transfer.Refusal
	if errors.As(err, &refusal) && refusal.Reason == transfer.AlreadyLeads {
		err, report.AlreadyLed = nil, true
	}
	report.ended(err)
	if report.planned || report.AlreadyLed || cli.WantsJSON(cmd) {
		if err := report.print(cmd.OutOrStdout(), cli.WantsJSON(cmd)); err != nil {
			return err
		}
	}
	return f.explain(cmd.Context(), name, err)
}

// plan finds the target and makes the plan, within --command-timeout. The client is the
// caller's to close, if there is one.
func (f *transferFlags) plan(ctx context.Context, report *handover, options transfer.Options) (*clientv3.Client, error) {
	once, cancel := context.WithTimeout(ctx, f.conn.CommandTimeout)
	defer cancel()
	client, err := f.conn.Dial(once)
	if err != nil {
		return nil, err
	}
	queue, err := transfer.Survey(once, client, report.Election)
	if err != nil {
		return client, err
	}
	report.Target = f.to
	for _, m := range queue.Members {
		if names(f.to, m.Candidate, f.conn.Namespace) {
			report.Target = m.Key
		}
	}
	plan, err := queue.Plan(report.Target, options)
	report.takePlan(plan, err == nil)
	return client, err
}

// carryOut hands leadership over. It is bounded: by what each step may take.
func (f *transferFlags) carryOut(ctx context.Context, client *clientv3.Client, report *handover, options transfer.Options) error {
	limit := f.drain
	for range len(report.Back) + 2 {
		limit += f.patience + f.conn.CommandTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := transfer.To(bounded, transfer.Client(client), report.Election, report.Target, options)
	report.takeResult(result, err)
	return err
}

// explain turns what came of a transfer into the command's end, with what to do about it.
func (f *transferFlags) explain(ctx context.Context, name string, err error) error {
	var refusal *transfer.Refusal
	switch {
	case errors.As(err, &refusal):
		code := cli.ExitRefused
		switch {
		case refusal.Unknown:
			code = cli.ExitFailed
		case refusal.Reason == transfer.NoLeader, refusal.Reason == transfer.UnknownTarget:
			code = cli.ExitNobody
		}
		text := connect.Because(err)
		if advice := adviceFor(refusal, name); advice != "" {
			text += ". " + advice
		}
		return cli.Exit(code, errors.New(text))
	case errors.Is(err, transfer.ErrOvertaken):
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%s: the target left the queue meanwhile, or gave way to a better one", connect.Because(err)))
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%s; eldest list %s shows who leads", connect.Because(err), cli.Printable(name)))
	case connect.Code(err) == codes.PermissionDenied:
		begin, _ := keys.MailboxRange(name)
		return fmt.Errorf("%s: user %q needs a role that may read the election's keys and write those under %s",
			connect.Because(err), f.conn.User, cli.Printable(f.conn.Namespace+begin))
	}
	return f.conn.Explain(ctx, err)
}

// nodeGivesWay is what a node of a service does when it is its turn (elector.Config.Priority):
// one that tells no priority, or is no node, never gives way.
func nodeGivesWay(own eldest.Candidate, others []eldest.Candidate) bool {
	priority := func(value []byte) int {
		node, _ := nodeOf(value)
		return int(node.Priority)
	}
	return priority(own.Value) != 0 && election.ByPriority(priority)(own, others)
}

// adviceFor says what can be done about a refusal.
func adviceFor(r *transfer.Refusal, name string) string {
	list := "eldest list " + cli.Printable(name)
	switch r.Reason {
	case transfer.UnknownTarget:
		return list + " shows who stands"
	case transfer.LeaderDeaf:
		return "eldest resign " + cli.Printable(name) + " removes its key, and the next in line leads"
	case transfer.Between:
		return "The first in line can be made the leader whoever they are; eldest resign can remove them from the queue"
	case transfer.Behind:
		return "With --order pass-by they may pass those who step back"
	case transfer.Outranked:
		return "Who has the highest priority (" + list + ") can be made the leader"
	case transfer.Busy, transfer.Changed:
		return "Look at it (" + list + ") and try again"
	case transfer.Silent:
		if r.Unknown {
			return list + " shows what came of it"
		}
		return "Its process may be stopped or cut off; or it needs more --patience"
	default:
		return ""
	}
}

// keysOf lists keys for people.
func keysOf(candidates []member) string {
	shown := make([]string, len(candidates))
	for i, c := range candidates {
		shown[i] = cli.Printable(c.Key)
	}
	return strings.Join(shown, ", ")
}
