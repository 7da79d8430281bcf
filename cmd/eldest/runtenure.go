//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// tenure is a leadership with a program.
type tenure struct {
	*round
	leadership *election.Leadership
	job        *job.Job
	env        []string // of the tenure, without a deadline

	running bool // the program was started
	stopped bool // it was told to end, because we are
	retired bool // it was told to end, because leadership is to be handed over
	warned  bool // it was told to end, because the deadline is near
	hook    <-chan job.HookResult
	grace   <-chan time.Time // after Stop
	checks  sync.WaitGroup
	// starting has a value when the program runs or will not, and late when the keeper
	// has taken too long to say so.
	starting <-chan error
	late     <-chan time.Time
	startEnv []string // that it was started with
	// next is what is to be done as soon as the leadership has enough time left; nil is
	// nothing. extended has a value after a renewal or a heartbeat.
	next     func()
	extended chan struct{}
	// idle ends the beats of the pulse while there is no program that could be asked.
	idle func()
}

func newTenure(o *round, l *election.Leadership, j *job.Job) *tenure {
	return &tenure{
		round: o, leadership: l, job: j, env: tenureEnv(o.o.name, l.Key(), l.Token()),
		extended: make(chan struct{}, 1),
	}
}

// errWarned is why a lease was given up before its deadline.
var errWarned = errors.New("no renewal was confirmed in time to keep the program running")

// killPatience is how long the keeper may take to confirm that nothing runs, of the time
// that the margin gives. The program's group has been killed by then; what is left is what
// has left the group.
const killPatience = 50 * time.Millisecond

// patience is killPatience where the lease lives: nobody looks at it while the keeper is
// waited for, so that must be over before its end.
func (t *tenure) patience() time.Duration {
	return max(killPatience, min(time.Second, t.remaining()/2))
}

// remaining is for how long nobody else can lead, by the lease and the heartbeats.
func (t *tenure) remaining() time.Duration { return t.candidate.Remaining() }

// startPatience is how long the keeper may take to start the program: one that stands
// still must not lead without a program.
const startPatience = 10 * time.Second

// serve runs the program, and what belongs to it, until it ends or must. When it returns
// nothing of it runs.
func (t *tenure) serve(ctx context.Context) outcome {
	feeding, hush := context.WithCancel(context.WithoutCancel(ctx))
	fed := make(chan struct{})
	t.tellDeadline()
	go func() {
		defer close(fed)
		t.feed(feeding)
	}()
	out := t.begin(ctx)
	if out == nil {
		out = t.watch(ctx)
	}
	t.signals.program.Store(false)
	hush()
	<-fed
	// Whatever the end was: nothing runs after this.
	t.job.Kill(killPatience)
	t.rouse()
	if t.starting != nil { // it may have run for a moment
		if err := <-t.starting; err == nil {
			t.started()
		}
	}
	t.checks.Wait()
	return *t.judge(out)
}

// rouse ends the beats of the pulse that stand in for a program.
func (t *tenure) rouse() {
	if t.idle != nil {
		t.idle()
		t.idle = nil
	}
}

// feed tells the keeper of each new deadline.
func (t *tenure) feed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.renewed:
			t.tellDeadline()
			select {
			case t.extended <- struct{}{}:
			default:
			}
		}
	}
}

// tellDeadline tells the keeper until when the leadership is certain. The clock is read before
// the candidate is asked for the time that is left, so that the sum is never too late.
func (t *tenure) tellDeadline() {
	now := job.Now()
	left := t.remaining()
	if left <= 0 {
		return
	}
	t.job.SetDeadline(job.Deadline{Term: now + left - t.graceNow(), Kill: now + left})
}

// graceNow is the grace that the lease has room for: a server that lowers the TTL leaves
// less to the program, too.
func (t *tenure) graceNow() time.Duration { return min(t.o.grace, t.session.TTL()/2) }

// roomy reports whether the lease has the time that it has when all is well: half of the
// TTL, and a tenth of it before the grace. Tenures are also won right after an outage,
// with what is left of a lease that could not be renewed meanwhile, and what is started
// then would be told to end at once. Heartbeats must have left a tenth of their time.
func (t *tenure) roomy() bool {
	now, ttl := t.session.Status(), t.session.TTL()
	return now.State == lease.Alive && now.Remaining >= max(ttl/2, t.graceNow()+ttl/10) && t.remaining() >= t.graceNow()+t.o.heartbeat/10
}

// whenRoomy does what is next now, or after the renewal that is due. Where none is
// confirmed the tenure ends at the deadline, and nothing was done.
func (t *tenure) whenRoomy(next func()) {
	told := t.next != nil
	if t.next = next; t.roomy() {
		t.next = nil
		next()
		return
	}
	if !told {
		left := t.remaining().Milliseconds()
		t.events.tell(campaignEvent{
			Event: "delayed", RemainingMS: &left, Cause: "the lease is to be renewed first, or what is started now would have to end at once",
		})
	}
}

// begin runs --on-win, or else the program. It returns an outcome if that ended all.
func (t *tenure) begin(ctx context.Context) *outcome {
	if ctx.Err() != nil {
		return &outcome{}
	}
	if t.o.onWin != "" {
		t.idle = t.beatWhileIdle() // --on-win has a limit of its own
		t.whenRoomy(func() {
			env := withDeadline(t.env, t.remaining)
			t.hook = t.job.Run(job.Shell(t.o.onWin, env, t.o.hookTimeout))
		})
		return nil
	}
	t.idle = t.beatWhileIdle()
	t.whenRoomy(t.launch)
	return nil
}

func (t *tenure) launch() {
	t.rouse()
	t.startEnv = withDeadline(t.env, t.remaining)
	t.starting = t.job.Launch(job.Command{Path: t.o.path, Args: t.o.program, Env: t.startEnv})
	t.late = time.After(startPatience)
}

// started is called when the program runs.
func (t *tenure) started() {
	t.starting, t.late, t.running = nil, nil, true
	t.noteUngrouped(t.job)
	pid, env := t.job.Pid(), t.startEnv
	t.signals.program.Store(!over(t.job))
	t.events.tell(campaignEvent{Event: "started", PID: pid})
	if t.o.health != "" {
		t.checks.Go(func() { t.checkHealth(env, pid) })
	}
}

// watch waits for the end of the tenure, of the program, or of the command. It returns nil
// where the program's status says all.
func (t *tenure) watch(ctx context.Context) *outcome {
	ending, warned, ended := ctx.Done(), t.job.Warned(), t.leadership.Done()
	var turned <-chan struct{} // once retired: the key may be gone
	for {
		select {
		case <-ended:
			if ended = nil; t.handsOver() {
				turned = t.candidate.Changed()
			}
			if !t.candidate.Status().Retired {
				// At once: in the case of a key that was deleted another may lead already.
				t.job.Kill(killPatience)
				return nil
			}
			if !t.stopped && !t.stop(syscall.SIGTERM) {
				return nil
			}
		case <-turned:
			turned = t.candidate.Changed()
			if !t.candidate.Status().Retired {
				t.job.Kill(killPatience)
				return nil
			}
		case <-t.job.Over():
			return nil
		case <-t.extended:
			if t.next != nil {
				t.whenRoomy(t.next)
			}
		case err := <-t.starting:
			switch {
			case err == nil:
				t.started()
				continue
			case errors.Is(err, job.ErrKeeper):
				t.starting = nil
				return nil
			case errors.Is(err, job.ErrLate): // the keeper had not heard of a newer one
				t.starting, t.late = nil, nil
				t.tellDeadline()
				t.idle = t.beatWhileIdle()
				t.whenRoomy(t.launch)
				continue
			}
			t.starting = nil
			return &outcome{refused: true, err: err}
		case <-t.late:
			t.job.Kill(killPatience)
			return &outcome{err: fmt.Errorf("%w: it has not started the program for %v", job.ErrKeeper, startPatience)}
		case <-warned:
			warned, t.warned = nil, true
			t.events.tell(campaignEvent{Event: "stopping", Cause: connect.Because(t.whyWarned())})
		case <-ending:
			ending, t.stopped = nil, true
			if t.retired {
				continue // it is stopping
			}
			t.events.tell(campaignEvent{Event: "stopping", Cause: context.Cause(ctx).Error()})
			if !t.stop(signalOf(ctx)) {
				return nil
			}
		case <-t.grace:
			t.job.Kill(t.patience())
			return nil
		case <-t.signals.again:
			t.job.Kill(t.patience())
			return nil
		case sig := <-t.signals.forward:
			t.job.Signal(sig)
		case end := <-t.hook:
			t.hook = nil
			t.hookEnded("on-win", end)
			if failure := end.Failure(); failure != nil {
				if errors.Is(failure, job.ErrKeeper) {
					return nil
				}
				return &outcome{err: fmt.Errorf("--on-win: %w", failure)}
			}
			t.whenRoomy(t.launch)
		}
	}
}

// stop ends the program with the signal and, after --grace, by force. It returns false if
// it has ended.
func (t *tenure) stop(sig syscall.Signal) bool {
	if !t.running || t.o.grace == 0 {
		t.job.Kill(t.patience())
		return false
	}
	t.job.Stop(sig, t.o.grace)
	// The keeper kills; this is for one that does not.
	t.grace = time.After(t.o.grace)
	return true
}

// handsOver reports whether the tenure has ended because it was asked to retire, and
// tells so, once.
func (t *tenure) handsOver() bool {
	why := t.leadership.Err()
	if !errors.Is(why, eldest.ErrRetired) {
		return false
	}
	if !t.retired {
		t.retired = true
		t.events.tell(campaignEvent{Event: "retired", Token: t.token, Cause: connect.Because(why)})
		if t.running && !t.stopped {
			t.events.tell(campaignEvent{Event: "stopping", Cause: connect.Because(why)})
		}
	}
	return true
}

// whyWarned is why the deadline is near.
func (t *tenure) whyWarned() error {
	if unwell := t.pulse.Err(); unwell != nil {
		return fmt.Errorf("--health has not succeeded: %w", unwell)
	}
	if t.o.heartbeat > 0 && t.session.Status().Remaining > t.graceNow() { // the lease is not the reason
		return eldest.ErrSuspended
	}
	return errWarned
}

// judge says how the tenure ended, once nothing runs. A loss comes before everything
// else; out is nil or what is known already.
func (t *tenure) judge(out *outcome) *outcome {
	status, keeper := t.job.Status(), t.job.Lost()
	if t.running {
		code := status.Exit()
		event := campaignEvent{Event: "exited", ExitCode: &code}
		if status.Unknown || status.Signal != 0 {
			event.Cause = status.String()
		}
		if keeper != nil {
			event.Cause += "; " + keeper.Error()
		}
		t.events.tell(event)
	}
	select {
	case <-t.job.Warned(): // perhaps seen by nobody yet
		t.warned = true
	default:
	}
	why := t.leadership.Err()
	var retired error
	if t.handsOver() {
		// No loss: whatever has become of the lease since, the tenure was over.
		why, retired = nil, why
	} else if why == nil && t.warned {
		if why = t.whyWarned(); !errors.Is(why, eldest.ErrSuspended) {
			// Lost, though the deadline is still ahead: whoever counts and tells of the end
			// must call it what it is.
			t.session.Forfeit(why)
			why = t.session.Err()
		}
	}
	left := t.job.Left()
	switch {
	case why == nil && left != nil:
		out = &outcome{ran: t.running, status: status, err: left}
	case why == nil && out != nil:
	case why == nil && keeper != nil && !t.stopped && !t.retired:
		out = &outcome{err: keeper}
	case why == nil:
		out = &outcome{ran: t.running, status: status}
	}
	switch {
	case why != nil:
		out = &outcome{ran: t.running, status: status, err: why}
		t.ended = connect.Because(why)
	case out.err != nil:
		t.ended = connect.Because(out.err)
	case retired != nil:
		t.ended = connect.Because(retired)
	case t.stopped || !out.ran:
		t.ended = "eldest was told to end"
	default:
		t.ended = "the program ended: " + status.String()
	}
	t.events.because(t.ended)
	out.retired = retired
	return out
}
