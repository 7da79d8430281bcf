package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
)

// Health is what a session knows of its lease.
type Health uint8

const (
	// Alive means: the lease exists until the deadline, and renewals succeed.
	Alive Health = iota
	// AtRisk means: the last renewal failed, and the deadline is ahead.
	AtRisk
	// Ended means: the lease is not certain any more. There is no way back.
	Ended
)

// String returns the name in lower case.
func (h Health) String() string { return [...]string{"alive", "at risk", "ended"}[h] }

// Stage is what a session does for the next renewal.
type Stage uint8

const (
	// Resting means: until Session.Next.
	Resting Stage = iota
	// Renewing means: the renewal is under way.
	Renewing
	// Confirming means: it was answered, and a majority is asked whether the member that answered
	// still led etcd when it did (decision 0015).
	Confirming

	stages
)

// String returns the name in lower case.
func (s Stage) String() string { return [stages]string{"resting", "renewing", "confirming"}[s] }

// Rhythm is what follows from a granted TTL.
type Rhythm struct {
	// TTL is what the server granted. Margin is subtracted from it: it covers clocks whose
	// rates differ by less than Margin / TTL.
	TTL, Margin time.Duration
	// Timeout bounds a request.
	Timeout time.Duration
}

// Session is the state of one session, a plain value. All instants are readings of the
// session's clock, which goes on while the machine sleeps.
//
// Invariants:
//   - Deadline is at or before the instant at which a server may expire the lease.
//   - At most one request is under way, and none while Resting.
type Session struct {
	Health Health
	Stage  Stage
	Rhythm Rhythm
	// Deadline is the first instant at which the lease is not certain.
	Deadline time.Duration
	// Next is when the next renewal is to be sent; while Resting.
	Next time.Duration
	// Sent is a reading from before the renewal under way was sent.
	Sent time.Duration
	// Granted and Term are of the renewal that is being confirmed.
	Granted Rhythm
	Term    uint64
	// Failures counts failed attempts in a row.
	Failures int
	// Shared says that others renew the lease as well: it is not revoked when this session
	// loses it.
	Shared bool
	// Cause says why the session ended; nil before.
	Cause error
}

// Opened is a session whose lease was granted or renewed by a request that was sent after
// the reading sent; the first renewal is due after a pause.
func Opened(r Rhythm, sent, now, pause time.Duration, shared bool) Session {
	return Session{Rhythm: r, Deadline: sent + r.TTL - r.Margin, Next: now + pause, Shared: shared}
}

// SessionKind is a kind of event of a session.
type SessionKind uint8

const (
	// Clock means: somebody has looked at the clock, a timer or a caller.
	Clock SessionKind = iota
	// Renewed means: a member answered the renewal, in Term, with the TTL of Rhythm. Term 0 is an
	// answer without one, which counts as it is.
	Renewed
	// Confirmed means: a majority has answered, in Term.
	Confirmed
	// Failed means: the request under way failed, or its outcome is not known. Err says why.
	Failed
	// Gone means: the server says that the lease does not exist. Err says so, too; or that the
	// TTL that it grants now cannot be worked with.
	Gone
	// Closed means: the user ends the session and has the lease revoked.
	Closed
	// Abandoned means: the user ends the session and leaves the lease alone.
	Abandoned
	// Forfeited means: the user ends the session as lost. Err says why.
	Forfeited

	sessionKinds
)

// SessionEvent is what a session learns.
type SessionEvent struct {
	Kind SessionKind
	// Now is a reading from after it was learnt.
	Now    time.Duration
	Rhythm Rhythm
	Term   uint64
	// Pause is how long to rest if the event ends an attempt.
	Pause time.Duration
	Err   error
}

// SessionEffects are what has to be done after a step, in the order of the fields.
type SessionEffects struct {
	// Ended says that the session has ended: its context ends first. Revoke: the lease is to
	// be revoked.
	Ended, Revoke bool
	// Renew and Confirm are requests to send, with their time-out.
	Renew, Confirm bool
	Timeout        time.Duration
	// Timer is the reading at which Clock is to come at the latest; 0 once it has ended.
	Timer time.Duration
}

var errNoRenewal = errors.New("no renewal was confirmed before the deadline")

// StepSession returns the state after an event and the effects to carry out.
func StepSession(s Session, e SessionEvent) (Session, SessionEffects) {
	next := s
	var revoke bool
	switch {
	case s.Health == Ended:
		return s, SessionEffects{}
	case e.Now >= s.Deadline:
		// Before anything else is believed: a reply may have waited in a buffer while this
		// process was stopped (G3).
		revoke = next.end(fmt.Errorf("%w: %w", eldest.ErrSessionLost, errNoRenewal), !s.Shared)
	default:
		revoke = next.learn(e)
	}
	return next, sessionBetween(&s, &next, e.Now, revoke)
}

// learn takes an event in, and reports whether the lease is to be revoked.
func (s *Session) learn(e SessionEvent) (revoke bool) {
	switch e.Kind {
	case Clock:
		if s.Stage == Resting && e.Now >= s.Next {
			s.Stage, s.Sent = Renewing, e.Now
		}
	case Renewed:
		s.Stage, s.Granted, s.Term = Confirming, e.Rhythm, e.Term
		if e.Term == 0 {
			return s.renewed(e)
		}
	case Confirmed:
		if e.Term > s.Term {
			s.failed(e) // it may have been answered by a member that led no more
			break
		}
		return s.renewed(e)
	case Failed:
		s.failed(e)
	case Gone:
		s.end(fmt.Errorf("%w: %w", eldest.ErrSessionLost, e.Err), false)
	case Closed:
		return s.end(fmt.Errorf("%w: the session was closed", eldest.ErrClosed), true)
	case Abandoned:
		return s.end(fmt.Errorf("%w: the session was abandoned", eldest.ErrClosed), false)
	case Forfeited:
		cause := eldest.ErrSessionLost
		if e.Err != nil {
			cause = fmt.Errorf("%w: %w", cause, e.Err)
		}
		return s.end(cause, !s.Shared)
	case sessionKinds:
	}
	return false
}

// renewed counts the renewal from when it was sent, not from its answer. The newest answer
// counts even where it is the shorter one: a server that lowered the TTL expires the lease
// by the lower one.
func (s *Session) renewed(e SessionEvent) (revoke bool) {
	s.Health, s.Stage, s.Failures = Alive, Resting, 0
	s.Rhythm, s.Deadline, s.Next = s.Granted, s.Sent+s.Granted.TTL-s.Granted.Margin, e.Now+e.Pause
	if e.Now >= s.Deadline {
		return s.end(fmt.Errorf("%w: %w", eldest.ErrSessionLost, errNoRenewal), !s.Shared)
	}
	return false
}

func (s *Session) failed(e SessionEvent) {
	s.Health, s.Stage, s.Next = AtRisk, Resting, e.Now+e.Pause
	s.Failures++
}

func (s *Session) end(cause error, revoke bool) bool {
	s.Health, s.Stage, s.Cause = Ended, Resting, cause
	return revoke
}

func sessionBetween(before, after *Session, now time.Duration, revoke bool) SessionEffects {
	if after.Health == Ended {
		return SessionEffects{Ended: true, Revoke: revoke}
	}
	e := SessionEffects{Timer: after.Deadline}
	if after.Stage == Resting {
		e.Timer = min(e.Timer, after.Next)
	}
	if after.Stage != before.Stage && after.Stage != Resting {
		e.Renew, e.Confirm = after.Stage == Renewing, after.Stage == Confirming
		e.Timeout = after.timeout(after.Deadline - now)
	}
	return e
}

// timeout is that of a request: it grows after failures, for the replies may not be lost
// but slow; but no attempt, which is two requests, takes more than half of the time that is
// left, so that another one always fits.
func (s *Session) timeout(left time.Duration) time.Duration {
	timeout := s.Rhythm.Timeout
	for range s.Failures {
		if timeout >= left/4 {
			break
		}
		timeout *= 2
	}
	return max(s.Rhythm.Timeout, min(timeout, left/4))
}
