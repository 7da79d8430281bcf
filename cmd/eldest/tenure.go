package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// tenure is a leadership during which a program runs; with --standby, also the wait for it.
type tenure struct {
	*round
	leadership *election.Leadership // nil before the win
	leading    atomic.Bool          // leadership is set
	lost       error                // why the candidacy ended before the win
	job        *job.Job

	running bool // the program was started
	exited  bool // its end was reported
	stopped bool // it was asked to end, because eldest ends
	drained bool // it was asked to end, because leadership is to be handed over
	// env is what a tenure adds to the environment of its hooks, and of a program that is not told it.
	env []string
	// out is how the tenure ended, if the exit status of the program is not the whole outcome.
	out *outcome

	// Channels that await receives from. A nil one is for what has happened, or cannot happen now.
	ending, ended, warning, changed <-chan struct{}
	late, graceOver                 <-chan time.Time
	// launched receives the answer of the keeper that is to start the program.
	launched <-chan error
	// extended has a value after a renewal or a heartbeat.
	extended chan struct{}
	unwell   bool // the latest --health has failed
}

func newTenure(o *round, j *job.Job) *tenure {
	return &tenure{round: o, job: j, warning: j.Warned(), extended: make(chan struct{}, 1)}
}

// leads makes l the leadership.
func (t *tenure) leads(l *election.Leadership) {
	t.leadership, t.ended = l, l.Done()
	t.leading.Store(true)
}

// errWarned is why a lease was given up before its deadline.
var errWarned = errors.New("no renewal was confirmed in time to keep the program running")

const (
	// killPatience is how long the keeper may take to confirm that nothing runs; it is a part of the
	// margin. The process group of the program has been killed by then; only processes that have left
	// the group may be left.
	killPatience = 50 * time.Millisecond
	// startPatience is how long the keeper may take to start the program: if the keeper is stopped,
	// eldest must not lead without a program.
	startPatience = 10 * time.Second
)

// run runs the program and its hooks until the program ends or must end. When it returns, none of
// their processes runs.
func (t *tenure) run(ctx context.Context) outcome {
	t.ending = ctx.Done()
	t.tellDeadline()
	t.tenure.Store(t)
	t.serve(ctx)
	t.end()
	return t.judge()
}

// end kills what runs. However the tenure ended, no process runs after this.
func (t *tenure) end() {
	t.tenure.Store(nil)
	t.signals.program.Store(false)
	t.job.Kill(killPatience)
	if t.launched != nil { // the program may have run for a moment
		if err := <-t.launched; err == nil && !t.running {
			t.started()
		}
		t.launched = nil
	}
}

// serve runs --on-win and then the program, each as soon as enough time is left in the lease, until
// the tenure is over. A program of --standby is told that it leads.
func (t *tenure) serve(ctx context.Context) {
	switch {
	case ctx.Err() != nil && t.running:
		await[struct{}](ctx, t, nil)
		return
	case ctx.Err() != nil:
		t.out = &outcome{}
		return
	}
	if t.onWin != "" {
		if !t.room(ctx) {
			return
		}
		t.env = []string{ofToken(t.token), untilWhen(t.remaining)}
		end, ok := await(ctx, t, t.job.Run(onWin, t.env...))
		if !ok {
			return
		}
		t.hookEnded(onWin, end)
		if failure := end.Failure(); failure != nil {
			switch {
			case t.running && errors.Is(failure, job.ErrOver): // the program has just ended
				await[struct{}](ctx, t, nil)
			case !errors.Is(failure, job.ErrKeeper):
				t.out = &outcome{err: fmt.Errorf("--on-win: %w", failure)}
				t.stopWaiting(ctx)
			}
			return
		}
	}
	if !t.launch(ctx, func() []string {
		if t.env = []string{ofToken(t.token), untilWhen(t.remaining)}; t.standby {
			return statusEnv() // it is told both
		}
		return t.env
	}) {
		return
	}
	t.ask(t)
	if !t.running {
		t.started()
	}
	if t.standby && !t.stopping() && t.leadership.Err() == nil {
		t.tellLeading()
	}
	await[struct{}](ctx, t, nil)
}

// stopWaiting ends a program that runs although the tenure failed before it was told that it leads.
func (t *tenure) stopWaiting(ctx context.Context) {
	if !t.running {
		return
	}
	if !t.stopping() {
		t.events.tell(event{Event: "stopping", Cause: connect.Because(t.out.err)})
		if !t.stop(syscall.SIGTERM) {
			return
		}
	}
	await[struct{}](ctx, t, nil)
}

// launch has the keeper start the program or, if the program runs already, confirm that it has the
// deadline, as soon as enough time is left in the lease. It returns false if the program does not
// run. env returns what the environment of the program has beside that of the round.
func (t *tenure) launch(ctx context.Context, env func() []string) bool {
	for t.room(ctx) {
		added := env()
		t.tellDeadline() // the one of the tenure can be before that of the wait
		t.launched, t.late = t.job.Launch(added...), time.After(startPatience)
		err, ok := await(ctx, t, t.launched)
		if !ok {
			return false
		}
		t.launched, t.late = nil, nil
		switch {
		case err == nil:
			return true
		case errors.Is(err, job.ErrKeeper):
			return false
		case !errors.Is(err, job.ErrLate) && t.running: // it has just ended
			await[struct{}](ctx, t, nil)
			return false
		case !errors.Is(err, job.ErrLate):
			t.out = &outcome{refused: true, err: err}
			return false
		}
		t.tellDeadline() // the keeper had not received a newer one
	}
	return false
}

// await receives from c. It returns false when the tenure is over, or the program has been killed.
func await[T any](ctx context.Context, t *tenure, c <-chan T) (v T, ok bool) {
	for {
		select {
		case v = <-c:
			return v, true
		case <-t.job.Over():
			select {
			case v = <-c: // it came before: how a hook ended, or why nothing was started
				return v, true
			default:
				return v, false
			}
		case <-t.ended:
			t.ended = nil
			if t.handsOver() {
				t.changed = t.candidate.Changed()
			}
			if !t.candidate.Status().Draining {
				// At once, because another candidate may lead already if the key was deleted.
				t.job.Kill(killPatience)
				return v, false
			}
			if !t.stopped && !t.stop(syscall.SIGTERM) {
				return v, false
			}
		case <-t.changed:
			t.changed = t.candidate.Changed()
			if !t.candidate.Status().Draining {
				t.job.Kill(killPatience)
				return v, false
			}
		case <-t.late:
			select {
			case v = <-c: // eldest was stopped, and not the keeper: the answer has to be received first
				return v, true
			case <-time.After(killPatience):
			}
			t.job.Kill(killPatience)
			t.out = &outcome{err: fmt.Errorf("%w: it has not started the program for %v", job.ErrKeeper, startPatience)}
			return v, false
		case <-t.warning:
			t.warning = nil
			t.events.tell(event{Event: "stopping", Cause: connect.Because(t.whyWarned())})
		case <-t.ending:
			t.ending, t.stopped = nil, true
			if t.drained {
				continue // it is stopping
			}
			t.events.tell(event{Event: "stopping", Cause: context.Cause(ctx).Error()})
			if !t.stop(signalOf(ctx)) {
				return v, false
			}
		case <-t.graceOver: // the keeper kills the program; this is for a keeper that does not
			t.job.Kill(t.patience())
			return v, false
		case <-t.signals.again:
			t.job.Kill(t.patience())
			return v, false
		case sig := <-t.signals.forward:
			t.job.Signal(sig)
		}
	}
}

// stop sends the signal to the program and, after --grace, kills it. It returns false if the program
// has ended.
func (t *tenure) stop(sig syscall.Signal) bool {
	if !t.running || t.grace == 0 {
		t.job.Kill(t.patience())
		return false
	}
	t.job.Stop(sig, t.grace)
	t.graceOver = time.After(t.grace)
	return true
}

// started is called when the program runs.
func (t *tenure) started() {
	t.running = true
	t.noteUngrouped(t.job)
	t.signals.program.Store(!job.Closed(t.job.Over()))
	t.events.tell(event{Event: "started", PID: t.job.Pid()})
}

// stopping reports whether the program has been asked to end.
func (t *tenure) stopping() bool { return t.stopped || t.drained || job.Closed(t.job.Warned()) }

// healthy runs --health, and reports whether it succeeded.
func (t *tenure) healthy() bool {
	result := <-t.job.Run(health, append(slices.Clone(t.env), fmt.Sprintf("%s=%d", envPID, t.job.Pid()))...)
	failure := result.Failure()
	// A check during the end of the program means nothing, and only changes are reported.
	if unwell := failure != nil; unwell != t.unwell && !job.Closed(t.job.Over()) && !errors.Is(failure, job.ErrOver) {
		t.unwell = unwell
		e := event{Event: "healthy"}
		if unwell {
			e.Event, e.Cause = "unhealthy", failure.Error()
		}
		t.events.tell(e)
	}
	return failure == nil
}

// renewed is called after each renewal and heartbeat.
func (t *tenure) renewed() {
	t.tellDeadline()
	select {
	case t.extended <- struct{}{}:
	default:
	}
}

// tellDeadline sends the keeper the time until which the leadership is certain. The clock is read
// before the remaining time of the candidate, so that the sum is never too late.
func (t *tenure) tellDeadline() {
	now := job.Now()
	if left := t.remaining(); left > 0 {
		t.job.SetDeadline(job.Deadline{Term: now + left - t.graceNow(), Kill: now + left})
	}
}

// patience is how long to wait for the keeper: killPatience, or more if the lease has time left. The
// lease is not checked during the wait, so the wait must end before the lease does.
func (t *tenure) patience() time.Duration {
	return max(killPatience, min(time.Second, t.remaining()/2))
}

// remaining is how long no other candidate can lead, by the lease and the heartbeats; before the win,
// how long the lease lasts.
func (t *tenure) remaining() time.Duration {
	if !t.leading.Load() {
		return t.Status().Remaining
	}
	return t.candidate.Remaining()
}

// graceNow is the grace for which the lease has time: if the server lowers the TTL, the program gets
// less, too.
func (t *tenure) graceNow() time.Duration { return min(t.grace, t.TTL()/2) }

// room waits until the lease has time for what is started next, and returns false if the tenure ends
// before that. If no renewal is confirmed, the tenure ends at the deadline, and nothing was started.
func (t *tenure) room(ctx context.Context) bool {
	for told := false; !t.roomy(); told = true {
		if !told {
			t.events.tell(event{
				Event: "delayed", RemainingMS: new(t.remaining().Milliseconds()),
				Cause: "the lease must be renewed first: a program started now would have to end at once",
			})
		}
		if _, ok := await(ctx, t, t.extended); !ok {
			return false
		}
	}
	return true
}

// roomy reports whether the lease has as much time left as in normal operation: half of the TTL, and
// the grace plus a tenth of the TTL. A tenure can also be won right after an outage, with the rest of
// a lease that could not be renewed meanwhile, and a program that is started then would be asked to
// end at once. Of the heartbeat timeout, the grace and a tenth must be left.
func (t *tenure) roomy() bool {
	now, ttl := t.Status(), t.TTL()
	return now.State == lease.Alive && now.Remaining >= max(ttl/2, t.graceNow()+ttl/10) && t.remaining() >= t.graceNow()+t.heartbeat/10
}

// handsOver reports whether the tenure has ended because the candidate was asked to drain, and writes
// the events for that once.
func (t *tenure) handsOver() bool {
	if t.leadership == nil {
		return false
	}
	why := t.leadership.Err()
	if !errors.Is(why, eldest.ErrDraining) {
		return false
	}
	if !t.drained {
		t.drained = true
		t.events.tell(event{Event: "drained", Cause: connect.Because(why)})
		if t.running && !t.stopped {
			t.events.tell(event{Event: "stopping", Cause: connect.Because(why)})
		}
	}
	return true
}

// whyWarned is why the deadline is near.
func (t *tenure) whyWarned() error {
	if unwell := t.pulse.Err(); unwell != nil {
		return fmt.Errorf("--health has not succeeded: %w", unwell)
	}
	if t.heartbeat > 0 && t.leading.Load() && t.Status().Remaining > t.graceNow() { // the lease is not the reason
		return eldest.ErrSuspended
	}
	return errWarned
}

// tellExited writes the event of the program's end, once nothing runs.
func (t *tenure) tellExited() {
	if !t.running || t.exited {
		return
	}
	t.exited = true
	end := t.job.End()
	e := event{Event: "exited", ExitCode: new(end.Status.Exit())}
	if end.Status.Unknown || end.Status.Signal != 0 {
		e.Cause = end.Status.String()
	}
	if end.Lost != nil {
		e.Cause += "; " + end.Lost.Error()
	}
	t.events.tell(e)
}

// judge returns how the tenure ended, once nothing runs. A loss takes precedence.
func (t *tenure) judge() outcome {
	t.tellExited()
	end := t.job.End()
	if t.exit = nil; t.running {
		t.exit = &end.Status
	}
	out := outcome{ran: t.running, exit: end.Status, err: t.lost}
	if t.leadership != nil {
		out.err = t.leadership.Err()
	}
	if t.handsOver() {
		// This is not a loss, whatever has happened to the lease since: the tenure was already over.
		out.err, out.drained = nil, out.err
	} else if out.err == nil && job.Closed(t.job.Warned()) {
		if out.err = t.whyWarned(); !errors.Is(out.err, eldest.ErrSuspended) {
			// The tenure is lost, although the deadline is still ahead: metrics and events must
			// report it as lost.
			t.Forfeit(out.err)
			out.err = t.Err()
		}
	}
	switch {
	case out.err != nil:
	case end.Left != nil:
		out.err = end.Left
	case t.out != nil:
		t.out.drained = out.drained
		out = *t.out
	case end.Lost != nil && !t.stopped && !t.drained:
		out = outcome{err: end.Lost}
	}
	switch {
	case out.err == nil && out.drained == nil && (t.stopped || !out.ran):
		t.cause = "eldest was asked to end"
	default:
		t.cause = out.why()
	}
	t.events.because(t.cause)
	return out
}
