//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/keys"
)

// runner is one run of "eldest run": rounds of standing, leading with a program, and
// standing again.
type runner struct {
	cmd     *cobra.Command
	conn    *connect.Flags // resolved
	o       runOptions     // checked
	events  *runEvents
	gate    *gate
	signals *runSignals
	client  *clientv3.Client
	face    *face.Face // nil without --http
	noted   bool       // it was said that there is no control group
}

func newRunner(cmd *cobra.Command, o runOptions) *runner {
	return &runner{cmd: cmd, conn: o.conn, o: o, gate: newGate()}
}

// How long it waits before it stands again: as long as programs end sooner than
// steadyAfter, twice as long each time.
const (
	firstPause  = time.Second
	longest     = 30 * time.Second
	steadyAfter = 10 * time.Second
)

// run stands and leads until a signal or --restart ends it. Whatever does, nothing of the
// program runs when it returns, and the key is gone or stderr says why not.
func (r *runner) run() (err error) {
	ctx, signals, stop := listenSignals(r.cmd.Context())
	defer stop()
	r.signals = signals
	r.events = newRunEvents(r.cmd.ErrOrStderr(), cli.WantsJSON(r.cmd), r.cmd.CommandPath(), r.o.name, r.conn.Why)
	defer r.events.Close(cli.LastLines)
	defer func() { err = r.events.failed(err) }()
	shown, err := r.o.serve(r.cmd, r.o.name, r.events.note)
	if err != nil {
		return err
	}
	defer shown.Close()
	r.face = shown
	for _, lack := range job.Promises() {
		r.notice("not guaranteed on this system: %s", lack)
	}

	mailboxes, _ := keys.MailboxRange(r.o.name)
	client, err := r.o.dial(ctx, r.cmd, r.o.name, r.events.note, grpc.WithChainUnaryInterceptor(r.gate.intercept(r.conn.Namespace+mailboxes)))
	if err != nil {
		return r.result(ctx, outcome{err: err})
	}
	defer func() { _ = client.Close() }()
	r.client = client
	if err := r.face.Observe(client); err != nil {
		return r.result(ctx, outcome{err: err})
	}

	for pause := firstPause; ; {
		begun := time.Now()
		out := r.round(ctx)
		if ctx.Err() != nil || !r.again(out) {
			return r.result(ctx, out)
		}
		if time.Since(begun) >= steadyAfter {
			pause = firstPause
		}
		if !r.rest(ctx, out, pause) {
			return r.result(ctx, outcome{})
		}
		pause = min(2*pause, longest)
	}
}

// rest waits before the next round, and reports whether there is to be one. The pause is
// spread, for those who failed together.
func (r *runner) rest(ctx context.Context, out outcome, pause time.Duration) bool {
	pause = time.Duration(float64(pause) * (0.9 + 0.2*rand.Float64()))
	r.events.stand("", 0)
	r.events.restarting(out.why(), pause)
	r.face.Rest(out.why(), pause)
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// outcome is how a round ended.
type outcome struct {
	// ran says that the program ran and ended by itself or after a signal to us;
	// status is how.
	ran    bool
	status job.Status
	// refused says that the program could not be started.
	refused bool
	// err is why the round failed: leadership lost, a hook that failed, etcd. nil
	// where the program's status says all.
	err error
	// final says that another round would fail the same way.
	final bool
	// retired is not nil if leadership was handed over, and says to whom; err is nil then,
	// unless a hook failed or the program could not be started.
	retired error
}

func (out outcome) succeeded() bool { return out.err == nil && (!out.ran || out.status.OK()) }

// why says in words how the round ended.
func (out outcome) why() string {
	if out.err != nil {
		return connect.Because(out.err)
	}
	if out.retired != nil {
		return connect.Because(out.retired)
	}
	return "the program ended: " + out.status.String()
}

// again reports whether --restart asks for another round.
func (r *runner) again(out outcome) bool {
	switch {
	case out.final:
		return false
	case out.retired != nil:
		return r.o.restart != restartNever // there is still work to do, for whoever leads
	case out.succeeded():
		return r.o.restart == restartAlways
	}
	return r.o.restart != restartNever
}

// result maps the last round to the command's end. What was lost comes first: whoever runs
// the command must learn of it even if they were about to end it.
func (r *runner) result(ctx context.Context, out outcome) error {
	stopped := ctx.Err() != nil
	switch {
	case lost(out.err), errors.Is(out.err, eldest.ErrSuspended):
		return cli.Exit(cli.ExitLost, errors.New(connect.Because(out.err)))
	case errors.Is(out.err, job.ErrLeft):
		return out.err
	case out.ran && r.o.exitCode:
		if out.status.OK() {
			return nil
		}
		return cli.Exit(out.status.Exit(), nil)
	case out.refused && r.o.exitCode:
		return cli.Exit(127, out.err)
	case out.refused, out.final && out.err != nil && !stopped:
		return r.conn.Explain(r.cmd.Context(), out.err)
	case stopped:
		return nil //nolint:nilerr // by a signal, as it should
	case out.err != nil:
		return r.conn.Explain(r.cmd.Context(), out.err)
	case out.retired != nil:
		return nil //nolint:nilerr // as it should
	case !out.status.OK():
		return fmt.Errorf("the program ended: %s", out.status)
	}
	return nil
}

// startKeeper starts a keeper with our standard streams for the program. A program reads
// no terminal: its group is not the one that the terminal listens to, and it would be
// stopped for trying.
func (r *runner) startKeeper() (*job.Job, error) {
	stdin, _ := r.cmd.InOrStdin().(*os.File)
	if stdin != nil && cli.OnTerminal(stdin) {
		stdin = nil
	}
	stdout, _ := r.cmd.OutOrStdout().(*os.File)
	stderr, _ := r.cmd.ErrOrStderr().(*os.File)
	keeper, err := job.Start([]string{"eldest", keeperCommand, "--", r.o.name}, stdin, stdout, stderr)
	if err == nil {
		r.noteUngrouped(keeper)
	}
	return keeper, err
}

// noteUngrouped says, once, that the program has no control group, and why.
func (r *runner) noteUngrouped(keeper *job.Job) {
	if why := keeper.Ungrouped(); why != nil && !r.noted {
		r.noted = true
		r.notice("not guaranteed here: that a program which goes on forking dies completely. There is no control group for it: %v", why)
	}
}

// notice writes what is no event of a candidate.
func (r *runner) notice(format string, args ...any) {
	r.events.note(fmt.Sprintf(format, args...))
}
