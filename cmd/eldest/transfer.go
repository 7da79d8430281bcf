package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// transferFlags are the flags of "eldest transfer".
type transferFlags struct {
	conn *connect.Flags
	// to is the target as the user names it: its key or its lease.
	to             string
	order          string
	timeout, drain time.Duration
	dryRun         bool
}

// maxTimeout bounds --timeout and --drain; a longer one is a mistake in the unit.
const maxTimeout = time.Hour

func newTransferCmd() *cobra.Command {
	var f transferFlags
	cmd := &cobra.Command{
		Use:   "transfer ELECTION --to KEY",
		Short: "Hand leadership to a given candidate",
		Long: `Hands leadership to the candidate named by --to: a key as "eldest list" shows it, or
only the lease in hex. No key is removed from outside: each candidate receives a request and
acts by itself, so that no two lead and every fencing token is larger than the ones before.

If the target is the first in line, the leader drains and all others keep their positions.
Otherwise the candidates between the two requeue first, one after another, each with a new
and larger token; with --order keep, all candidates behind the target requeue as well, so
that the order among all others does not change. With --order pass-by the candidates behind
the target keep their positions, in front of those that requeue. The leader is asked last:
until then it leads, and a transfer that stops half way has only moved candidates that wait.

All candidates that have to move must take part ("eldest list" shows which do): candidates
of eldest campaign, run and service node, unless they were started with --no-transfer, and
programs that serve transfers. Programs that use etcd's own election package do not. If one
of those would have to move, the transfer is refused before any candidate has moved. It is
also refused if the target is a node with a priority and a node with a higher priority
waits: the target would yield instead of leading.

--dry-run shows what would be done, and does nothing. With --json the result is an object
with election, target, order, dry_run, done, leader and back (the candidate that is to
drain, and those that are to requeue, each with key and token), overtaken, foreign, and, for
the steps that were done, moved (key, token, and new_token), drained, now_leads; if it
failed also error, and if it was refused reason and who.

Not guaranteed: the target may lead only for a short time, or not at all if it leaves while
the others requeue for it (then the next in line leads, and the exit code is 1).

Exit codes: 0 done, or the target leads already; 1 failed, or the outcome is not known;
2 bad usage; 4 no candidate leads, or the target is not in the queue; 6 refused: the leader
still leads, but some candidates may have requeued.
` + connect.Help,
		Example: `  eldest transfer nightly-jobs --to nightly-jobs/694d9a3f2c1b4e07 --dry-run
  eldest transfer nightly-jobs --to 694d9a3f2c1b4e07 --order pass-by`,
		Args: cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.conn = connect.AddFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", "", "the candidate that is to lead: its key, or its lease in hex")
	fl.StringVar(&f.order, "order", transfer.Keep.String(), "of the other candidates: keep or pass-by")
	fl.DurationVar(&f.timeout, "timeout", transfer.DefaultTimeout, "limit of the answer of each candidate")
	fl.DurationVar(&f.drain, "drain", transfer.DefaultDrain, "limit of the leader's work after it has drained")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and do nothing")
	return cmd
}

// check refuses bad arguments before anything is sent.
func (f *transferFlags) check(name string) (options transfer.Options, err error) {
	if err := keys.Check(name); err != nil {
		return options, cli.Exit(cli.ExitUsage, err)
	}
	options = transfer.Options{Timeout: f.timeout, Drain: f.drain, ShouldYield: operate.ShouldYield}
	options.Order, err = transfer.ParseOrder(f.order)
	switch {
	case err != nil:
		return options, cli.Usagef("--order %s: want keep or pass-by", cli.Printable(f.order))
	case f.to == "":
		return options, cli.Usagef("--to is missing; eldest list %s shows the keys of the candidates", cli.Printable(name))
	case f.timeout <= 0 || f.timeout > maxTimeout:
		return options, cli.Usagef("--timeout %v: want more than 0s and at most %v", f.timeout, maxTimeout)
	case f.drain <= 0 || f.drain > maxTimeout:
		return options, cli.Usagef("--drain %v: want more than 0s and at most %v", f.drain, maxTimeout)
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
	report := handover{Election: name, Target: f.to, Order: options.Order.String(), DryRun: f.dryRun}
	result, err := f.carryOut(cmd.Context(), &report, options)
	if refusal, ok := errors.AsType[*transfer.Refusal](err); ok && refusal.Reason == transfer.AlreadyLeads {
		err, report.AlreadyLed = nil, true
	}
	report.fill(result, err)
	if err := show(cmd, report, report.text); err != nil {
		return err
	}
	return f.explain(cmd.Context(), name, err)
}

// carryOut makes the plan, within --command-timeout, and hands leadership over unless --dry-run is
// given.
func (f *transferFlags) carryOut(ctx context.Context, report *handover, options transfer.Options) (result transfer.Result, err error) {
	once, cancel := context.WithTimeout(ctx, f.conn.CommandTimeout)
	defer cancel()
	client, err := f.conn.Dial(once)
	if err != nil {
		return result, err
	}
	defer func() { _ = client.Close() }()
	queue, err := transfer.Survey(once, client, report.Election)
	if err != nil {
		return result, err
	}
	for _, m := range queue.Members {
		if operate.Names(f.to, m.Candidate, f.conn.Namespace) {
			report.Target = m.Key
		}
	}
	if result.Plan, err = queue.Plan(report.Target, options); err != nil || f.dryRun {
		return result, err
	}
	bounded, cancel := context.WithTimeout(ctx, operate.Limit(result.Plan, options, f.conn.CommandTimeout))
	defer cancel()
	return transfer.To(bounded, transfer.Client(client), report.Election, report.Target, options)
}

// explain turns the outcome of a transfer into the error of the command, with advice.
func (f *transferFlags) explain(ctx context.Context, name string, err error) error {
	refusal, refused := errors.AsType[*transfer.Refusal](err)
	switch {
	case refused:
		code := cli.ExitRefused
		switch {
		case refusal.Unknown:
			code = cli.ExitFailed
		case refusal.Reason == transfer.NoLeader, refusal.Reason == transfer.UnknownTarget:
			code = cli.ExitNobody
		}
		why := errors.New(connect.Because(err))
		if advice := operate.Advice(refusal, name); advice != "" {
			why = cli.Advise(why, advice)
		}
		return cli.Exit(code, why)
	case errors.Is(err, transfer.ErrOvertaken):
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%s: the target left the queue meanwhile, or yielded to another candidate", connect.Because(err)))
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return cli.Exit(cli.ExitFailed, cli.Advise(errors.New(connect.Because(err)), "eldest list "+cli.Printable(name)+" shows the leader"))
	case connect.Code(err) == codes.PermissionDenied:
		begin, _ := keys.RequestRange(name)
		return cli.Advise(errors.New(connect.Because(err)), fmt.Sprintf("user %q needs a role that may read the election's keys and write those under %s",
			f.conn.User, cli.Printable(f.conn.Namespace+begin)))
	}
	return f.conn.Explain(ctx, err)
}

// member is a candidate in the report of a transfer.
type member struct {
	Key   string       `json:"key"`
	Token eldest.Token `json:"token"`
	// NewToken is its token after it has requeued.
	NewToken eldest.Token `json:"new_token,omitempty"`
}

// handover is what "eldest transfer" reports. It is the object of --json.
type handover struct {
	Election string `json:"election"`
	Target   string `json:"target"`
	Order    string `json:"order"`
	DryRun   bool   `json:"dry_run"`
	// Done is true if the target was seen to lead, or led already (AlreadyLed).
	Done       bool `json:"done"`
	AlreadyLed bool `json:"already_led,omitempty"`
	// Leader is the candidate that is to drain, Back are those that are to requeue, in order.
	// Overtaken are those that are in front of Back after that.
	Leader    *member  `json:"leader,omitempty"`
	Back      []member `json:"back"`
	Overtaken []member `json:"overtaken,omitempty"`
	Foreign   []string `json:"foreign,omitempty"`
	// Moved are the candidates that have requeued.
	Moved    []member `json:"moved,omitempty"`
	Drained  bool     `json:"drained"`
	NowLeads *member  `json:"now_leads,omitempty"`
	// Error is why the transfer was not done, Reason the word for a refusal, and Who the candidates
	// that the refusal is about.
	Error  string   `json:"error,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Who    []member `json:"who,omitempty"`

	plan transfer.Plan
}

// members are never null in JSON.
func members(candidates ...eldest.Candidate) []member {
	all := make([]member, len(candidates))
	for i, c := range candidates {
		all[i] = member{Key: c.Key, Token: c.Token}
	}
	return all
}

// fill records the plan, what was done, and why no more was done.
func (h *handover) fill(result transfer.Result, err error) {
	h.plan = result.Plan
	h.Back, h.Overtaken, h.Foreign = members(h.plan.Back...), members(h.plan.Overtaken...), h.plan.Foreign
	if h.plan.Leader.Token != 0 {
		h.Leader = &members(h.plan.Leader)[0]
	}
	for _, m := range result.Moved {
		h.Moved = append(h.Moved, member{Key: m.Candidate.Key, Token: m.Candidate.Token, NewToken: m.Token})
	}
	if h.Drained = result.Drained; result.Leader.Token != 0 {
		h.NowLeads = &members(result.Leader)[0]
	}
	if h.Done = err == nil && (!h.DryRun || h.AlreadyLed); err == nil {
		return
	}
	h.Error = connect.Because(err)
	if refusal, ok := errors.AsType[*transfer.Refusal](err); ok {
		h.Reason, h.Who = string(refusal.Reason), members(refusal.Who...)
	}
}

// text writes the report for people.
func (h *handover) text(w io.Writer) {
	switch {
	case h.AlreadyLed:
		_, _ = fmt.Fprintf(w, "%s leads already\n", cli.Printable(h.Target))
	case h.DryRun && h.Error != "":
	case h.DryRun:
		_, _ = fmt.Fprintf(w, "This would hand %s to %s:\n", cli.Printable(h.Election), cli.Printable(h.Target))
		h.table(w)
	default:
		for _, m := range h.Moved {
			_, _ = fmt.Fprintf(w, "%s requeued: its token was %d and is %d\n", cli.Printable(m.Key), m.Token, m.NewToken)
		}
		if h.Drained {
			_, _ = fmt.Fprintf(w, "%s drained with token %d\n", cli.Printable(h.Leader.Key), h.Leader.Token)
		}
		if h.NowLeads != nil {
			_, _ = fmt.Fprintf(w, "%s leads with token %d\n", cli.Printable(h.NowLeads.Key), h.NowLeads.Token)
		}
	}
}

// table lists what each candidate is to do, in order.
func (h *handover) table(w io.Writer) {
	rows := []string{"WHAT\tKEY\tTOKEN\tVALUE"}
	add := func(what string, candidates ...eldest.Candidate) {
		for _, c := range candidates {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s", what, cli.Printable(c.Key), c.Token, operate.ShownValue(c.Value)))
		}
	}
	add("requeues", h.plan.Back...)
	add("drains", h.plan.Leader)
	add("leads", h.plan.Target)
	table(w, rows...)
	listed := func(what string, keys []string) {
		for i, key := range keys {
			keys[i] = cli.Printable(key)
		}
		if len(keys) > 0 {
			_, _ = fmt.Fprintf(w, "%s: %s\n", what, strings.Join(keys, ", "))
		}
	}
	var overtaken []string
	for _, c := range h.plan.Overtaken {
		overtaken = append(overtaken, c.Key)
	}
	listed("These would then be in front of the candidates that requeue", overtaken)
	listed("Keys that belong to no candidate, and may block programs that use etcd's own package", h.Foreign)
}
