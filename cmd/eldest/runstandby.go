package main

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/observe"
)

// programStatus is one line for a program of --standby. The newest one counts.
type programStatus struct {
	// Status is "following", "unknown" or, for good, "leading".
	Status string `json:"status"`
	// Leader is the leader while another candidate leads.
	Leader *candidateJSON `json:"leader,omitempty"`
	// Ahead is the number of older candidates, the leader included; nil while it is unknown. Next is
	// whether there is only the leader; nil unless another candidate leads.
	Ahead *int  `json:"ahead,omitempty"`
	Next  *bool `json:"next,omitempty"`
	// Cause is why the status is unknown.
	Cause string `json:"cause,omitempty"`
	// Key, Token and Deadline are those of the tenure.
	Key      string       `json:"key,omitempty"`
	Token    eldest.Token `json:"token,omitempty"`
	Deadline string       `json:"deadline,omitempty"`
}

// waiting returns the status of a program whose candidate waits.
func waiting(p observe.Position) programStatus {
	s := programStatus{Status: "unknown"}
	if p.Ahead >= 0 {
		s.Ahead = new(p.Ahead)
	}
	switch {
	case p.Kind == eldest.Led && p.Ahead != 0:
		s.Status, s.Next, s.Leader = "following", new(p.Ahead == 1), new(candidateForJSON(p.Leader))
	case p.Kind == eldest.Led:
		s.Cause = "this candidate is about to lead"
	case p.Reason != nil:
		s.Cause = connect.Because(p.Reason)
	default:
		s.Cause = eldest.ErrNoLeader.Error()
	}
	return s
}

// notElected is the outcome of a round whose candidacy ended with err before a win.
func notElected(ctx context.Context, err error) outcome {
	return outcome{err: err, final: ctx.Err() == nil && !lost(err)}
}

// win blocks until campaign has won; it returns false, and how the round ended, if it has not. With
// --standby the program runs meanwhile.
func (t *tenure) win(ctx context.Context, campaign func(context.Context) (*election.Leadership, error)) (out outcome, won bool) {
	if t.standby {
		return t.standBy(ctx, campaign)
	}
	l, err := campaign(ctx)
	if err != nil {
		return notElected(ctx, err), false
	}
	t.leads(l)
	return outcome{}, true
}

// campaigned is the outcome of a campaign in the background.
type campaigned struct {
	leadership *election.Leadership
	err        error
}

// standBy runs the program while the candidate, which is registered, waits to lead. It blocks until
// campaign has won, and returns true: the program runs, and has not been told of the win yet. Or it
// returns false, and how the round ended: the candidacy is over, and no process of the program runs.
func (t *tenure) standBy(ctx context.Context, campaign func(context.Context) (*election.Leadership, error)) (out outcome, won bool) {
	t.ending = ctx.Done()
	t.tellDeadline()
	t.tenure.Store(t)
	campaigning, withdraw := context.WithCancelCause(ctx)
	defer withdraw(nil)
	result := make(chan campaigned, 1)
	go func() {
		l, err := campaign(campaigning)
		result <- campaigned{l, err}
	}()
	var end campaigned
	over := false      // the campaign is
	t.ended = t.Done() // the result of the campaign is read once the program runs
	if ctx.Err() == nil && t.launch(ctx, statusEnv) {
		t.ended = nil
		t.started()
		stop := t.tellPositions(campaigning)
		end, over = await(ctx, t, result)
		stop()
	}
	if over && end.err == nil && !t.stopped {
		t.leads(end.leadership)
		return outcome{}, true
	}
	switch {
	case !over: // nothing runs
		t.end()
		t.tellExited()
		withdraw(eldest.ErrWithdrawn)
		end = <-result
		if err := cmp.Or(t.Err(), end.err); lost(err) && !t.stopped {
			t.lost = err // the program ended because of that, or at the same moment
		}
	case ctx.Err() != nil: // await receives that, too, and asks the program to end
		await[struct{}](ctx, t, nil)
	default:
		t.lost, t.stopped = end.err, true
		t.events.tell(event{Event: "stopping", Cause: connect.Because(end.err)})
		if t.stop(syscall.SIGTERM) {
			await[struct{}](ctx, t, nil)
		}
	}
	t.end()
	out = t.judge()
	if t.lost != nil {
		out.final = !lost(t.lost)
	}
	return out, false
}

// tellPositions sends the program the leader, and the position of the candidate, until stop is
// called.
func (t *tenure) tellPositions(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		observer, err := observe.New(observe.Config{Election: t.name, KV: t.client, Watcher: t.client, Key: t.candidate.Key()})
		if err == nil {
			defer observer.Close()
			err = t.followPositions(ctx, observer.Positions())
		}
		if ctx.Err() == nil {
			t.tellProgram(programStatus{Status: "unknown", Cause: connect.Because(err)})
			t.events.notice("CMD is not told its position: %s", connect.Because(err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (t *tenure) followPositions(ctx context.Context, positions *observe.Positions) error {
	for {
		p, err := positions.Next(ctx)
		if err != nil {
			return err
		}
		t.tellProgram(waiting(p))
	}
}

// tellLeading tells the program that it leads.
func (t *tenure) tellLeading() {
	now := time.Now() // before the remaining time is read, so that the sum is never too late
	t.tellProgram(programStatus{
		Status: "leading", Key: t.candidate.Key(), Token: t.token, Deadline: now.Add(t.remaining()).Format(time.RFC3339Nano),
	})
}

func (t *tenure) tellProgram(s programStatus) { t.job.Send([]byte(cli.JSONLine(s))) }
