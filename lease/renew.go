package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/renewal"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/serial"
)

// errGone is returned when the server replied that the lease does not exist.
var errGone = errors.New("the server replied that the lease does not exist")

// tick is the function of the timer.
func (s *Session) tick() { s.do(core.SessionEvent{Kind: core.Clock}) }

// Together is called when another session of the client renews.
func (m member) Together() { m.do(core.SessionEvent{Kind: core.Together}) }

// member adapts a session to its client's stream.
type member struct{ *Session }

func (s *Session) do(e core.SessionEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(e)
}

// step processes an event and starts what follows from it, which never blocks. It returns the
// reading of the clock. The caller holds mu.
func (s *Session) step(e core.SessionEvent) time.Duration {
	// The clock first: a reply may have waited in a buffer while this process was stopped.
	e.Now, e.Silent = s.cfg.Clock.Now(), s.cfg.Liveness.Err()
	before := s.state
	next, effects := core.StepSession(before, e)
	s.state = next
	if next.Stage != before.Stage && s.attempt != nil {
		s.attempt.stop()
		s.attempt = nil
	}
	if next.Stage == core.Ended {
		if effects.Ended {
			s.ended(effects.Revoke)
		}
		return e.Now
	}
	s.tell(&before, effects, e.Now)
	switch {
	case effects.Renew:
		s.attempt = s.renew(effects.Timeout)
	case effects.Confirm:
		s.attempt = s.confirm(effects.Timeout)
	case effects.Again:
		s.attempt.again(effects.Timeout)
	case effects.Renewed:
		return s.step(core.SessionEvent{Kind: core.Rested, Pause: spread(next.Rhythm)})
	case effects.Pause:
		s.tasks.Go(func() { s.pause(next.Failures, next.Reason) })
	}
	if e.Kind != core.Together || effects.Timer != s.wake {
		s.wake = effects.Timer
		s.timer.Reset(max(effects.Timer-e.Now, loop.LeastTimer))
	}
	return e.Now
}

// tell calls the hooks for a step.
func (s *Session) tell(before *core.Session, effects core.SessionEffects, now time.Duration) {
	if effects.AtRisk {
		serial.Call(s.hooks, s.cfg.Hooks.AtRisk, AtRiskEvent{Remaining: s.state.Deadline - now, Err: s.state.Reason})
	}
	event := RenewedEvent{Latency: now - before.Sent, TTL: s.state.Rhythm.TTL, Slack: before.Deadline - now}
	if effects.Renewed {
		serial.Call(s.hooks, s.cfg.Hooks.Renewed, event)
	}
	if effects.Recovered {
		serial.Call(s.hooks, s.cfg.Hooks.Recovered, event)
	}
}

// pause calls Backoff for the pause after a failed attempt, on a goroutine of its own because
// Backoff is code of the user.
func (s *Session) pause(failures int, reason error) {
	if !errors.Is(reason, eldest.ErrUnresponsive) {
		retryrpc.Reconnect(s.cfg.Lease)
	}
	s.do(core.SessionEvent{Kind: core.Rested, Pause: s.cfg.Backoff(failures - 1)})
}

// ended ends the session, once. The caller holds mu.
func (s *Session) ended(revoke bool) {
	s.timer.Stop()
	if revoke {
		past.Revoking(int64(s.id)) // before the lease can be resumed
	}
	s.end(s.failed("session", s.state.Cause))
	s.candidates.End()
	serial.Call(s.hooks, s.cfg.Hooks.Lost, LostEvent{Cause: context.Cause(s.ctx)})
	wanted, end := context.WithCancel(context.Background())
	s.noRevoke = end
	rhythm := s.state.Rhythm
	go func() {
		defer close(s.done)
		defer end()
		s.client.Stream.Leave(member{s})
		s.tasks.Wait()
		if revoke {
			s.revoked = s.revoke(wanted, rhythm)
		}
		s.cfg.Keeper.Drop(s.id)
		s.client.Release()
	}()
}

// attempt is a renewal or confirmation in progress, which may be sent twice. The session's mutex
// guards its fields.
type attempt struct {
	session *Session
	// ctx ends with the attempt. requests is the number of requests in flight.
	ctx      context.Context
	cancel   context.CancelFunc
	requests int
	// renewal or question is the request that is shared with other sessions.
	renewal  *renewal.Renewal
	question *renewal.Question
}

// renew sends a renewal on the client's stream if usable, or as a request. The caller holds mu.
func (s *Session) renew(timeout time.Duration) *attempt {
	a := &attempt{session: s}
	if s.client.Stream.Usable() {
		a.requests++
		a.renewal = s.client.Stream.Renew(s.id, a.streamed)
	} else {
		a.single(timeout)
	}
	return a
}

// confirm sends a request to the majority. The caller holds mu.
func (s *Session) confirm(timeout time.Duration) *attempt {
	a := &attempt{session: s}
	a.question = s.client.Majority.Ask(timeout, func(term uint64, err error) {
		kind := core.Confirmed
		if err != nil {
			kind = core.Failed
		}
		a.learn(core.SessionEvent{Kind: kind, Term: term, Err: err})
	})
	return a
}

// again hedges: it sends the request a second time. The caller holds the session's mutex.
func (a *attempt) again(timeout time.Duration) {
	if a.question != nil {
		a.question.Again()
		return
	}
	if a.renewal != nil {
		a.renewal.Slow()
	}
	a.single(timeout)
}

// single renews by a separate request. The caller holds the session's mutex.
func (a *attempt) single(timeout time.Duration) {
	s := a.session
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(s.ctx)
	}
	a.requests++
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, timeout)
		defer cancel()
		a.answered(renewal.Once(ctx, s.cfg.Lease, s.id))
	})
}

// stop cancels the requests in flight. The caller holds the session's mutex.
func (a *attempt) stop() {
	if a.cancel != nil {
		a.cancel()
	}
	if a.renewal != nil {
		a.renewal.Stop()
	}
	if a.question != nil {
		a.question.Stop()
	}
}

// learn sends the session an event of the attempt, unless the attempt has ended.
func (a *attempt) learn(e core.SessionEvent) {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	if a.session.attempt == a {
		a.session.step(e)
	}
}

// streamed processes the outcome of a renewal on the stream, on a goroutine of the stream.
func (a *attempt) streamed(answer renewal.Answer, err error) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.attempt != a:
	case err != nil:
		s.interrupted(a)
	case answer.TTL == s.state.Rhythm.TTL:
		s.step(core.SessionEvent{Kind: core.Renewed, Term: s.term(answer), Rhythm: s.state.Rhythm})
	default: // not on the stream's goroutine: it calls code of the user
		s.tasks.Go(func() { a.answered(answer, nil) })
	}
}

// interrupted continues the attempt when its stream has failed: by a request, unless one is in
// flight or the time of the attempt is over. The caller holds mu.
func (s *Session) interrupted(a *attempt) {
	a.requests--
	now := s.step(core.SessionEvent{Kind: core.Clock})
	if left := s.state.Asked + s.state.Timeout - now; s.attempt == a && a.requests == 0 && s.cfg.Liveness.Err() == nil {
		a.single(left)
	}
}

// answered processes the outcome of a renewal by request.
func (a *attempt) answered(answer renewal.Answer, err error) {
	s := a.session
	s.mu.Lock()
	if s.attempt != a {
		s.mu.Unlock()
		return
	}
	a.requests--
	if err != nil && a.requests > 0 { // the other request may succeed
		s.mu.Unlock()
		return
	}
	rhythm := s.state.Rhythm
	s.mu.Unlock()

	e := core.SessionEvent{Kind: core.Renewed, Term: s.term(answer), Rhythm: rhythm}
	switch {
	case err != nil:
		e = core.SessionEvent{Kind: core.Failed, Err: err}
	case answer.TTL == 0:
		e = core.SessionEvent{Kind: core.Gone, Err: errGone}
	case answer.TTL != rhythm.TTL:
		if e.Rhythm, err = s.cfg.rhythm(answer.TTL); err != nil {
			e = core.SessionEvent{Kind: core.Forfeited, Err: fmt.Errorf("the server now grants %v: %w", answer.TTL, err)}
		}
	}
	a.learn(e)
}

// term returns the Raft term to confirm; 0 if none has to be confirmed.
func (s *Session) term(answer renewal.Answer) uint64 {
	if _, counts := s.cfg.Majority.(Unconfirmed); counts {
		return 0
	}
	return answer.Term
}
