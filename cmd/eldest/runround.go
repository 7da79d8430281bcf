//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// round is one session: standing, and a tenure with the program, or several if heartbeats are missed.
type round struct {
	*runner
	session *lease.Session
	// candidate is nil until there is one.
	candidate *election.Candidate
	pulse     *lease.Pulse // nil without --health
	// renewed has a value after a renewal or a heartbeat.
	renewed chan struct{}
	// token is that of the tenure; 0 without one. ended is why it ended.
	token eldest.Token
	ended string
	// left is what of the program could not be killed. It may act as if it led: the key is
	// not removed, and the lease not revoked, and both end with the TTL.
	left error
}

// missedChecks is how many --health-every may pass without a success.
const missedChecks = 3

// round stands once and, if it wins, runs the program. When it returns nothing runs, and
// the key has been removed as far as etcd can be reached.
func (r *runner) round(ctx context.Context) outcome {
	o := &round{runner: r, renewed: make(chan struct{}, 1)}
	if r.o.health != "" {
		o.pulse = lease.NewPulse(missedChecks * r.o.healthEvery)
	}
	// The events first: they tell the keeper of each new deadline.
	told := hooks.Tee(hooks.Set{
		Session: r.events.sessionHooks(func() {
			select {
			case o.renewed <- struct{}{}:
			default:
			}
		}),
		Candidate: teller(r.events.tellAt).candidateHooks(ctx, r.notice),
	}, r.face.Hooks())
	cfg := r.o.session()
	cfg.Lease, cfg.Pulse, cfg.Hooks = r.client, o.pulse, told.Session
	session, err := lease.Open(ctx, cfg)
	if err != nil {
		return outcome{err: err, final: true}
	}
	o.session = session
	r.events.stand(keys.Candidate(r.o.name, int64(session.ID())), int64(session.ID()))
	if err := r.o.checkGrace(session.TTL(), "the TTL that etcd granted"); err != nil {
		o.leave(nil, err)
		return outcome{err: err, final: true}
	}
	candidate, err := election.New(election.Config{
		Election: r.o.name, Session: session, KV: r.client, Watcher: r.client,
		Value: []byte(r.o.value), Hooks: told.Candidate,
	})
	if err != nil {
		o.leave(nil, err)
		return outcome{err: err, final: true}
	}
	o.candidate = candidate
	r.face.Candidate(session, candidate, r.o.value)
	if !r.o.noTransfer {
		// It ends with the session, which is closed by then.
		defer takePart(transfer.Config{Candidate: candidate, Session: session, KV: r.client, Watcher: r.client}, r.notice)()
	}
	out := o.stand(ctx, candidate)
	if o.token == 0 && ctx.Err() != nil {
		r.events.because(context.Cause(ctx).Error())
	}
	o.leave(candidate, out.err)
	o.lossHook(out)
	return out
}

// stand campaigns and serves. When it returns, nothing runs.
func (o *round) stand(ctx context.Context, candidate *election.Candidate) outcome {
	// Before the win, so that the program need not wait for the keeper's start.
	keeper, err := o.keeperOfLease()
	if err != nil {
		return outcome{err: err} // there may be room for it in the next round
	}
	defer func() { keeper.Close() }()
	campaign := candidate.Campaign
	for {
		idle := o.beatWhileIdle()
		leadership, err := campaign(ctx)
		idle()
		if err != nil {
			return outcome{err: err, final: ctx.Err() == nil && !lost(err)}
		}
		o.token = leadership.Token()
		keeper.Settle()
		if keeper.Lost() != nil { // while we waited
			if keeper, err = o.another(keeper); err != nil {
				return outcome{err: err}
			}
		}
		o.gate.set(true)
		out := newTenure(o, leadership, keeper).serve(ctx)
		keeper.Close()
		if o.left = keeper.Left(); o.left != nil {
			if out.final = true; !errors.Is(out.err, job.ErrLeft) {
				o.notice("%v", o.left)
			}
			return out
		}
		o.gate.set(false)
		if !o.leadsOn(ctx, out) {
			return out
		}
		o.lossHook(out)
		o.token = 0
		if keeper, err = o.another(keeper); err != nil {
			return outcome{err: err}
		}
		campaign = func(ctx context.Context) (*election.Leadership, error) {
			if leadership.Err() == nil { // heartbeats were late, and not too late
				return leadership, nil
			}
			return candidate.Await(ctx)
		}
	}
}

// leadsOn reports whether the round goes on after a tenure, with the same key: only heartbeats were
// missing, and --restart has the program started anew.
func (o *round) leadsOn(ctx context.Context, out outcome) bool {
	return errors.Is(out.err, eldest.ErrSuspended) && !errors.Is(out.err, eldest.ErrUnresponsive) &&
		o.o.restart != restartNever && ctx.Err() == nil && o.session.Err() == nil && !o.candidate.Status().Retired
}

// another replaces a keeper that is gone; on failure it returns the old one. There is one
// at a time: what a keeper leaves is told from others by being our child.
func (o *round) another(gone *job.Job) (*job.Job, error) {
	gone.Close()
	next, err := o.keeperOfLease()
	if err != nil {
		return gone, err
	}
	return next, nil
}

// keeperOfLease starts a keeper that revokes the lease when this process has died and nothing of the
// program runs any more.
func (o *round) keeperOfLease() (*job.Job, error) {
	keeper, err := o.startKeeper()
	if err != nil {
		return nil, err
	}
	with, err := json.Marshal(estate{Conn: o.o.conn, Lease: o.session.ID(), TTL: o.session.TTL()})
	if err == nil {
		err = keeper.SetFarewell(with)
	}
	if err != nil && !errors.Is(err, job.ErrKeeper) { // one that is gone is replaced after the win
		keeper.Close()
		return nil, err
	}
	return keeper, nil
}

// beatWhileIdle keeps the pulse alive while there is no program that could be asked.
func (o *round) beatWhileIdle() (stop func()) {
	if o.pulse == nil {
		return func() {}
	}
	ticker := time.NewTicker(o.o.healthEvery)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			o.pulse.Beat()
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		ticker.Stop()
		o.pulse.Beat()
	}
}

// leave removes the key and revokes the lease, within --command-timeout.
func (o *round) leave(candidate *election.Candidate, why error) {
	limit := o.conn.CommandTimeout
	if o.left != nil {
		limit = min(limit, time.Second) // nothing that removes the key is sent
	}
	if unconfirmed := leave(o.cmd.Context(), limit, candidate, o.session, why); unconfirmed != nil {
		o.events.note(unconfirmed.Error())
	}
}

// lossHook runs --on-loss after a tenure, unless something of the program is left. The key is
// gone by now, and so is everything of the program; the hook has a keeper of its own.
func (o *round) lossHook(out outcome) {
	if o.o.onLoss == "" || o.token == 0 || o.left != nil {
		return
	}
	key := keys.Candidate(o.o.name, int64(o.session.ID()))
	env := append(tenureEnv(o.o.name, key, o.token), envCause+"="+o.ended)
	if out.ran {
		env = append(env, fmt.Sprintf("%s=%d", envExitCode, out.status.Exit()))
	}
	keeper, err := o.startKeeper()
	if err != nil {
		o.hookEnded("on-loss", job.HookResult{Err: err})
		return
	}
	defer keeper.Close()
	result := keeper.Run(job.Shell(o.o.onLoss, env, o.o.hookTimeout))
	select {
	case end := <-result:
		o.hookEnded("on-loss", end)
	case <-o.signals.again:
		keeper.Close()
		o.hookEnded("on-loss", <-result)
	}
}

// hookEnded tells how a hook ended.
func (r *runner) hookEnded(name string, end job.HookResult) {
	event := campaignEvent{Event: "hook", Hook: name}
	if end.Err == nil {
		code := end.Status.Exit()
		event.ExitCode = &code
	}
	if failure := end.Failure(); failure != nil {
		event.Cause = failure.Error()
	}
	r.events.tell(event)
}
