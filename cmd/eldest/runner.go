package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// runner is one "eldest run". It runs rounds, in each of which it is a candidate with one session.
type runner struct {
	runOptions // checked

	cmd     *cobra.Command
	events  *eventLog
	hold    hold
	signals *runSignals
	client  *clientv3.Client
	status  *httpstatus.Status
	noted   bool // the missing control group was reported
}

// outcome is how a round, or a tenure, ended.
type outcome struct {
	// ran is true if the program ran and ended, by itself or after a signal to eldest; exit is its
	// exit status.
	ran  bool
	exit job.Status
	// refused means that the program could not be started.
	refused bool
	// err is why the round failed: leadership lost, a hook that failed, etcd. It is nil if the exit
	// status of the program is the whole outcome.
	err error
	// final is true if another round would fail the same way.
	final bool
	// drained is not nil if leadership was handed over, and names the target; err is nil then, unless
	// a hook failed or the program could not be started.
	drained error
}

// why renders how the round ended.
func (out outcome) why() string {
	switch {
	case out.err != nil:
		return connect.Because(out.err)
	case out.drained != nil:
		return connect.Because(out.drained)
	}
	return "the program ended: " + out.exit.String()
}

// The pause before the next round doubles from firstPause to longest, as long as rounds end within
// steadyAfter.
const (
	firstPause  = time.Second
	longest     = 30 * time.Second
	steadyAfter = 10 * time.Second
)

// run campaigns and leads until a signal or --restart ends it. When it returns, no process of the
// program runs, and the key is deleted or stderr says why not.
func (r *runner) run() (err error) {
	ctx, signals, stop := listenSignals(r.cmd.Context())
	defer stop()
	r.signals = signals
	r.openEvents(r.cmd.ErrOrStderr(), cli.WantsJSON(r.cmd), r.cmd.CommandPath())
	defer r.events.Close(cli.LastLines)
	defer func() { err = r.failed(err) }()
	if r.status, err = r.serve(r.cmd, r.name, r.events.wait.Say); err != nil {
		return err
	}
	defer r.status.Close()
	for _, lack := range job.Promises() {
		r.events.notice("limitation of this system: %s", lack)
	}
	requests, _ := keys.RequestRange(r.name)
	r.client, err = r.conn.DialPatiently(ctx, r.events.wait, grpc.WithChainUnaryInterceptor(r.hold.intercept(r.conn.Namespace+requests)))
	if err == nil {
		defer func() { _ = r.client.Close() }()
		err = r.status.Observe(r.client)
	}
	if err != nil {
		return r.result(ctx, outcome{err: err})
	}
	for pause := firstPause; ; pause = min(2*pause, longest) {
		begun := time.Now()
		out := r.round(ctx)
		if ctx.Err() != nil || !r.again(out) {
			return r.result(ctx, out)
		}
		if time.Since(begun) >= steadyAfter {
			pause = firstPause
		}
		if !r.rest(ctx, out.why(), pause) {
			return r.result(ctx, outcome{})
		}
	}
}

// rest waits before the next round, and reports whether there is to be one. The pause is randomized,
// so that commands that failed together do not start again together.
func (r *runner) rest(ctx context.Context, why string, pause time.Duration) bool {
	pause = time.Duration(float64(pause) * (0.9 + 0.2*rand.Float64()))
	r.events.begin("", 0)
	r.events.own(event{Event: "restarting", Cause: why, InMS: new(pause.Milliseconds())})
	r.status.Rest(why, pause)
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// again reports whether --restart asks for another round. After a handover it does, whatever the exit
// status of the program: the work of the leader is not finished.
func (r *runner) again(out outcome) bool {
	succeeded := out.drained == nil && out.err == nil && (!out.ran || out.exit.OK())
	return !out.final && (r.restart == restartAlways || r.restart == restartOnFailure && !succeeded)
}

// result maps the last round to the result of the command. A loss takes precedence: the caller must
// be informed of it even if the command was about to end.
func (r *runner) result(ctx context.Context, out outcome) error {
	stopped := ctx.Err() != nil
	switch {
	case lost(out.err), errors.Is(out.err, eldest.ErrSuspended):
		return cli.Exit(cli.ExitLost, errors.New(connect.Because(out.err)))
	case errors.Is(out.err, job.ErrLeft):
		return out.err
	case out.ran && r.exitCode && out.exit.OK():
		return nil
	case out.ran && r.exitCode:
		return cli.Exit(out.exit.Exit(), nil)
	case out.refused && r.exitCode:
		return cli.Exit(127, out.err)
	case out.err != nil && (out.refused || !stopped):
		return r.conn.Explain(r.cmd.Context(), out.err)
	case stopped, out.drained != nil, out.exit.OK():
		return nil //nolint:nilerr // as it should
	}
	return fmt.Errorf("the program ended: %s", out.exit)
}

// openEvents starts to write the events, and all other messages of eldest, to out: stdout is the
// program's. Write errors are ignored, because the program continues for its users.
func (r *runner) openEvents(out io.Writer, asJSON bool, path string) {
	e := &eventLog{asJSON: asJSON, election: r.name}
	notice := func(text string) string {
		if asJSON {
			return cli.JSONLine(event{Event: "notice", Time: time.Now().Format(time.RFC3339Nano), Election: r.name, Text: text})
		}
		return cli.NoticeLine(path, text)
	}
	e.wait = &connect.Notice{Conn: r.conn, Say: func(text string) { e.Write(notice(text)) }}
	e.Lines = cli.WriteLines(out, func(text string) { _, _ = io.WriteString(out, notice(text)) }, func(error) {})
	r.events = e
}

// failed returns the result of the command. With --json the last line reports the failure, and no
// text for people follows it.
func (r *runner) failed(err error) error {
	code, reason := cli.ExitCode(err, true)
	if !r.events.asJSON || reason == nil {
		return err
	}
	f := cli.FailureOf(r.cmd, code, reason)
	r.events.own(event{Event: "failed", Cause: plain.Lines(reason.Error()), Error: f.Error, ExitCode: &f.ExitCode, Advice: f.Advice})
	return cli.Exit(code, nil)
}

// round is one session: a candidacy, and a tenure with the program; several if heartbeats are missed.
type round struct {
	*runner
	*candidacy
	pulse  *lease.Liveness // nil without --health
	checks *time.Ticker    // of --health
	// tenure is the current one, asked the one whose program is asked for its health; nil without one.
	tenure, asked atomic.Pointer[tenure]
	// token is that of the tenure; 0 without one. cause is why it ended, exit how its program did; nil
	// if none ran.
	token eldest.Token
	cause string
	exit  *job.Status
	// left is not nil if processes of the program could not be killed. They may act as if they led:
	// the key is not removed and the lease is not revoked, and both end with the TTL.
	left error
}

// missedChecks is how many times --health-every may pass without a success.
const missedChecks = 3

// round is a candidate once and, if it wins, runs the program. When it returns, no process of the
// program runs, and the key has been removed if etcd can be reached.
func (r *runner) round(ctx context.Context) outcome {
	o := &round{runner: r}
	if r.health != "" {
		o.pulse = lease.NewLiveness(missedChecks * r.healthEvery)
		defer o.checkHealth()()
	}
	renewed := func() {
		if t := o.tenure.Load(); t != nil {
			t.renewed()
		}
	}
	cfg := r.session()
	cfg.Liveness = o.pulse
	cfg.Hooks = lease.Hooks{Renewed: func(lease.RenewedEvent) { renewed() }, Heartbeat: func(lease.HeartbeatEvent) { renewed() }}
	c, err := r.open(ctx, r.client, r.value, cfg, r.events, r.status)
	if err != nil {
		return outcome{err: err, final: true}
	}
	o.candidacy = c
	out := outcome{final: true}
	if out.err = r.checkGrace(c.TTL(), "the TTL that etcd granted"); out.err == nil {
		out = o.campaign(ctx)
	}
	if o.token == 0 && ctx.Err() != nil {
		r.events.because(context.Cause(ctx).Error())
	}
	limit := r.conn.CommandTimeout
	if o.left != nil {
		limit = min(limit, time.Second) // nothing that removes the key is sent
	}
	c.end(r.cmd.Context(), limit, out.err, r.events)
	o.lossHook()
	return out
}

// ask sets the tenure whose program is asked for its health, for the first time after --health-every;
// nil is none.
func (o *round) ask(t *tenure) {
	o.asked.Store(t)
	if o.pulse != nil {
		o.checks.Reset(o.healthEvery)
		o.pulse.Alive()
	}
}

// checkHealth beats the liveness probe until stop is called: while there is a program to ask, only
// when --health succeeds. Without beats the session stops renewing and the lease expires: a program
// that hangs does not keep other candidates from leading.
func (o *round) checkHealth() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	o.checks = time.NewTicker(o.healthEvery)
	go func() {
		defer close(done)
		defer o.checks.Stop()
		for {
			select {
			case <-o.checks.C:
			case <-quit:
				return
			}
			if t := o.asked.Load(); t == nil || t.healthy() {
				o.pulse.Alive()
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// campaign campaigns and leads. When it returns, no process of the program runs.
func (o *round) campaign(ctx context.Context) outcome {
	// The keeper is started before the win, so that the program need not wait for its start.
	keeper, err := o.startKeeper()
	if err != nil {
		return outcome{err: err} // the start may succeed in the next round
	}
	defer func() { keeper.Close() }()
	// There is one keeper at a time: what it leaves is recognized only as children of this process.
	another := func() (err error) {
		keeper.Close()
		next, err := o.startKeeper()
		if err == nil {
			keeper = next
		}
		return err
	}
	campaign := o.candidate.Campaign
	if o.standby {
		if _, err := o.candidate.Register(ctx); err != nil {
			return notElected(ctx, err)
		}
		campaign = o.candidate.Await
	}
	var held *election.Leadership // a tenure that goes on with another keeper
	for {
		t, out, won := newTenure(o, keeper), outcome{}, held != nil
		if won {
			t.leads(held)
		} else if out, won = t.win(ctx, campaign); won && keeper.End().Lost != nil && !t.running { // while the candidate waited
			if err := another(); err != nil {
				return outcome{err: err}
			}
			held = t.leadership
			continue
		}
		if won {
			o.token = t.leadership.Token()
			o.hold.Set(true)
			out = t.run(ctx)
		}
		keeper.Close()
		if o.left = keeper.End().Left; o.left != nil {
			if out.final = true; !errors.Is(out.err, job.ErrLeft) {
				o.events.notice("%v", o.left)
			}
			return out
		}
		o.hold.Set(false)
		if !won || !o.leadsOn(ctx, out) {
			return out
		}
		o.lossHook()
		o.token = 0
		if err := another(); err != nil {
			return outcome{err: err}
		}
		o.ask(nil)
		campaign, held = o.candidate.Await, nil
		if t.leadership.Err() == nil { // heartbeats were late, but not too late
			held = t.leadership
		}
	}
}

// leadsOn reports whether the round goes on after a tenure, with the same key: only heartbeats were
// missing, and --restart asks to start the program again.
func (o *round) leadsOn(ctx context.Context, out outcome) bool {
	return errors.Is(out.err, eldest.ErrSuspended) && !errors.Is(out.err, eldest.ErrUnresponsive) &&
		o.restart != restartNever && ctx.Err() == nil && o.Err() == nil && !o.candidate.Status().Draining
}

// The names of the hooks.
const (
	onWin  = "on-win"
	onLoss = "on-loss"
	health = "health"
)

// startKeeper starts a keeper with the standard streams of this process for the program. The keeper
// revokes the lease when this process has died and no process of the program runs any more.
func (o *round) startKeeper() (*job.Job, error) {
	check := job.Shell(o.health, o.healthEvery)
	check.Mute = true
	spec := job.Spec{
		Program: job.Command{Path: o.path, Args: o.program}, Messages: o.standby,
		Hooks: map[string]job.Command{onWin: job.Shell(o.onWin, o.hookTimeout), health: check},
	}
	var err error
	if spec.Farewell, err = json.Marshal(estate{Conn: o.conn, Lease: o.ID(), TTL: o.TTL()}); err != nil {
		return nil, err
	}
	return o.startJob(spec)
}

// startJob starts a keeper as spec says, with env added to the environment. A program does not get a
// terminal as stdin: it is not in the foreground process group, and would be stopped when it reads.
func (o *round) startJob(spec job.Spec, env ...string) (*job.Job, error) {
	spec.Env = append(tenureEnv(o.name, o.candidate.Key()), env...)
	stdin, _ := o.cmd.InOrStdin().(*os.File)
	if stdin != nil && cli.OnTerminal(stdin) {
		stdin = nil
	}
	stdout, _ := o.cmd.OutOrStdout().(*os.File)
	stderr, _ := o.cmd.ErrOrStderr().(*os.File)
	j, err := job.Start([]string{"eldest", keeperCommand, "--", o.name}, spec, stdin, stdout, stderr)
	if err == nil {
		o.noteUngrouped(j)
	}
	return j, err
}

// noteUngrouped reports once that the program has no control group, and why.
func (r *runner) noteUngrouped(j *job.Job) {
	if why := j.Ungrouped(); why != nil && !r.noted {
		r.noted = true
		r.events.notice("no control group (%v): processes that go on forking may not all be killed", why)
	}
}

// lossHook runs --on-loss after a tenure, unless processes of the program are left. By now the key is
// deleted and no process of the program runs; the hook has a keeper of its own.
func (o *round) lossHook() {
	if o.onLoss == "" || o.token == 0 || o.left != nil {
		return
	}
	env := []string{ofToken(o.token), envCause + "=" + o.cause}
	if o.exit != nil {
		env = append(env, fmt.Sprintf("%s=%d", envExitCode, o.exit.Exit()))
	}
	keeper, err := o.startJob(job.Spec{Hooks: map[string]job.Command{onLoss: job.Shell(o.onLoss, o.hookTimeout)}}, env...)
	if err != nil {
		o.hookEnded(onLoss, job.HookResult{Refused: err.Error()})
		return
	}
	defer keeper.Close()
	result := keeper.Run(onLoss)
	select {
	case end := <-result:
		o.hookEnded(onLoss, end)
	case <-o.signals.again:
		keeper.Close()
		o.hookEnded(onLoss, <-result)
	}
}

// hookEnded writes the event of a hook that ended.
func (r *runner) hookEnded(name string, end job.HookResult) {
	e := event{Event: "hook", Hook: name}
	if end.Refused == "" {
		e.ExitCode = new(end.Status.Exit())
	}
	if failure := end.Failure(); failure != nil {
		e.Cause = failure.Error()
	}
	r.events.tell(e)
}

// keeperCommand is the command with which "eldest run" starts its keeper.
const keeperCommand = "run-keeper"

// newKeeperCmd returns the command of the process that supervises the program of "eldest run".
func newKeeperCmd() *cobra.Command {
	return &cobra.Command{
		Use:    keeperCommand + " ELECTION",
		Short:  "Supervise a program; started only by eldest run",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(*cobra.Command, []string) error { return job.Keep(bequest) },
	}
}

// estate is what the keeper needs when "eldest run" has died.
type estate struct {
	Conn  *connect.Flags   `json:"conn"`
	Lease clientv3.LeaseID `json:"lease"`
	TTL   time.Duration    `json:"ttl"` // how long the keeper tries to revoke the lease
}

// bequest returns what the keeper of "eldest run" does once that and the program are dead: it revokes
// the lease, because no process acts under it any more.
func bequest(with []byte) (farewell func() error) {
	var left estate
	if err := json.Unmarshal(with, &left); err != nil {
		return func() error { return err } // the lease expires
	}
	revoker := keeper.NewRevoker(func(ctx context.Context) (*clientv3.Client, error) { return left.Conn.Dial(ctx) })
	return func() error { return revoker.RevokeAll(left.TTL, left.Lease) }
}
