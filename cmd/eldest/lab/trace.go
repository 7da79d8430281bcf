package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/campaigns"
	"github.com/eldest-io/eldest/keys"
)

// traceFlags are the flags of "eldest trace".
type traceFlags struct {
	conn      *connect.Flags
	scene     campaigns.Config
	act       string
	svg       string
	normalise bool
	// election is "" for all messages of a program; program is nil for our own candidates.
	election string
	program  []string
}

func newTraceCmd() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace ELECTION | trace [ELECTION] -- CMD [ARG]...",
		Short: "Show every request, answer and event between candidates and etcd",
		Long:  traceHelp + connect.Help,
		Example: `  eldest trace jobs
  eldest trace jobs --act crash --candidates 4
  eldest trace jobs --act withdraw --contender concurrency --normalise
  eldest trace jobs --svg resign.svg
  eldest trace -- etcdctl put key value
  eldest trace nightly-jobs --endpoints etcd1:2379 -- eldest run nightly-jobs -- sleep 60`,
		Args: f.take,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return newTracer(cmd, &f).run()
		},
	}
	f.conn = connect.AddFlags(cmd)
	f.conn.Explicit = true
	fl := cmd.Flags()
	fl.Lookup("endpoints").Usage = "trace on this etcd; only as a flag, never from the environment (default: an etcd of its own)"
	fl.Lookup("endpoints").DefValue = "[]" // shown as empty
	fl.IntVar(&f.scene.Candidates, "candidates", 3, "number of candidates, up to 20")
	fl.StringVar(&f.act, "act", string(campaigns.Resign), "the act: "+campaigns.Names())
	cli.TTLVar(fl, &f.scene.TTL, 0, "time to live of the leases (default: 1m, so that none is renewed; 3s for crash and cut)")
	fl.StringVar(&f.scene.Contender, "contender", contender.Eldest, "the implementation: eldest, or concurrency, etcd's own package")
	fl.StringVar(&f.svg, "svg", "", "draw a sequence diagram of the normal form into this file")
	fl.BoolVar(&f.normalise, "normalise", false, "write the normal form, at the end: the same text for every run with the same flags")
	return cmd
}

const traceHelp = `Runs a proxy on 127.0.0.1 between clients and etcd and prints the messages, in order: one
line for each request (→), answer and event (←), with the seconds since the start, the
client and the number of the call. Keys and values are quoted, and shortened if they are long;
leases are in hexadecimal, revisions are written r5, "create" and "mod" are those of a
key, and w0 is the number of a watch on its stream. Passwords and tokens are not shown.

"eldest trace ELECTION" runs a small election on its own etcd: --candidates campaign, c1
leads, and then comes the --act:
  resign    the leader resigns
  withdraw  the candidate behind the leader leaves the queue
  delete    an operator deletes the leader's key
  crash     the leader crashes, and its lease expires
  cut       the leader is partitioned; it stops leading at its deadline
It ends when the next candidate leads, or waits for another one.

"eldest trace [ELECTION] -- CMD" traces a program instead, and ends with its exit code;
with ELECTION, messages about other keys are omitted. CMD must connect to the proxy: its
address is in ELDEST_ENDPOINTS and ETCDCTL_ENDPOINTS, which the commands of eldest and
etcdctl read unless --endpoints is among their own arguments, and replaces {} in the
arguments of CMD. The connection to the proxy is without TLS, and variables of the
environment that ask for TLS are not passed on. The standard streams are CMD's; the trace
is written to stderr then. A client is named by its user agent, which in Go is set with
grpc.WithUserAgent("name"); others are called client, client-2 and so on, one for each
connection.

Without --endpoints, etcd is one member in this process, empty at the beginning and deleted
at the end. With it, the proxy uses --cacert, --cert and --key for etcd; while it runs,
every process that can reach 127.0.0.1 may use them through it. --user is for the command's
own candidates; a program logs in by itself.

--normalise omits times, the ends of streams, and messages whose times vary; merges
renewals into one; calls leases L1, L2, ..., watches w1, w2, ... of each client, and the
revision at the beginning r1; and groups related messages: a request and
its answer, and then the events that it caused. --svg draws that, with the time in which
a candidate's key is in etcd. Both keep up to 20000 messages.

--json writes one object a line: time_ms, kind (request, answer, event, end, note), lane,
connection, call, method, text, took_ms (answers), lost (true if it was not delivered), code and
error (ends), and message, the message as JSON (bytes in base64). With --normalise: kind,
lane, method, text, lost.

Exit codes: 0 done; 1 failed; 2 bad usage; 130 interrupted; of CMD: its own.
`

// take splits the arguments at the dash.
func (f *traceFlags) take(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) == 1:
		f.election = args[0]
		return nil
	case dash < 0 && len(args) == 0:
		return cli.Missing(cmd, "election, or a program after --,")
	case dash < 0:
		return errors.New("want one ELECTION; a program goes after --: eldest trace [ELECTION] -- CMD ARG")
	case dash > 1:
		return fmt.Errorf("want one ELECTION before --, not %d", dash)
	case len(args) == dash:
		return cli.Missing(cmd, "program")
	}
	if dash == 1 {
		f.election = args[0]
	}
	f.program = args[dash:]
	return nil
}

// check checks the flags, before anything is sent or started.
func (f *traceFlags) check(cmd *cobra.Command) error {
	fl := cmd.Flags()
	if f.program != nil {
		for _, name := range []string{"candidates", "act", "ttl", "contender", "user", "password", "namespace"} {
			if fl.Changed(name) {
				return cli.Usagef("--%s is for candidates of eldest's own, not for a program", name)
			}
		}
	}
	if f.program == nil || f.election != "" {
		if err := keys.Check(f.election); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
	}
	if f.program == nil {
		if err := cli.Positive(fl, "candidates"); err != nil {
			return err
		}
		if f.scene.TTL < 0 {
			return cli.Usagef("--ttl %v: want more than 0s", f.scene.TTL)
		}
		f.scene.Election, f.scene.Act = f.election, campaigns.Act(f.act)
		if err := f.scene.Check(); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
	}
	if err := f.conn.Resolve(cmd); err != nil {
		return err
	}
	if !fl.Changed("endpoints") {
		f.conn.Endpoints = nil
	}
	if f.svg == "" {
		return nil
	}
	// Report a diagram that cannot be written before the run, not after it.
	file, err := os.OpenFile(f.svg, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // named by the user, and for reading
	if err != nil {
		return cli.Usagef("--svg: %w", err)
	}
	return file.Close()
}

// traceLimit limits the time of a scene: an act takes a TTL, and at worst two.
func (f *traceFlags) traceLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, 2*f.scene.TTL+time.Minute, errors.New("the act did not end in time"))
}
