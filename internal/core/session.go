package core

import (
	"errors"
	"fmt"
	"time"
)

// Stage is what a session does.
type Stage uint8

const (
	// Resting means: no renewal is under way, until Session.Next.
	Resting Stage = iota
	// Renewing means: the renewal is under way.
	Renewing
	// Confirming means: the renewal was answered, and a majority is asked whether the member that
	// answered was still etcd's leader when it did (decision 0015).
	Confirming
	// Pausing means: the attempt is over, and the length of the rest is being determined.
	Pausing
	// Ended means: the lease is not certain any more. This stage is final.
	Ended

	stages
)

// String returns the name in lower case.
func (s Stage) String() string {
	return [stages]string{"resting", "renewing", "confirming", "pausing", "ended"}[s]
}

// Rhythm is the timing that follows from a granted TTL.
type Rhythm struct {
	// TTL is what the server granted. Margin is subtracted from it: it covers clocks whose
	// rates differ by less than Margin / TTL.
	TTL, Margin time.Duration
	// Every is the longest time between two renewals. A renewal may be sent a tenth of it earlier.
	Every time.Duration
	// Timeout bounds a request.
	Timeout time.Duration
}

// Deadline returns the first instant at which a lease is no longer certain, if the request that
// granted or renewed it was sent after the clock reading sent. It is at or before the instant at
// which a server may expire the lease, as long as the rates of the clocks differ by less than
// Margin / TTL.
func (r Rhythm) Deadline(sent time.Duration) time.Duration { return sent + r.TTL - r.Margin }

// Session is the state of one session, a plain value. All instants are readings of the session's
// clock, which continues while the machine sleeps.
//
// Invariants:
//   - Deadline is at or before the instant at which a server may expire the lease.
//   - While Renewing and Confirming, one request is under way, which may have been sent twice, and
//     no other.
type Session struct {
	Stage  Stage
	Rhythm Rhythm
	// Deadline is the first instant at which the lease is no longer certain.
	Deadline time.Duration
	// Next is when the next renewal is to be sent; while Resting.
	Next time.Duration
	// Sent is a clock reading from before the renewal under way was sent.
	Sent time.Duration
	// Asked is a reading from before the request of this stage was sent, Timeout how long it may
	// take. Hedged is true if it was sent a second time.
	Asked, Timeout time.Duration
	Hedged         bool
	// Granted and Term belong to the renewal that is being confirmed.
	Granted Rhythm
	Term    uint64
	// Failures counts failed attempts in a row. The session is at risk while there are any. Reason
	// is why the last one failed.
	Failures int
	Reason   error
	// Shared is true if other sessions renew the lease as well: then it is not revoked when this
	// session loses it.
	Shared bool
	// Revoke is true if the session has ended and its lease is to be revoked.
	Revoke bool
	// Cause is why the session ended; nil before.
	Cause error
}

// Opened returns a session whose lease was granted or renewed by a request that was sent after the
// reading sent. The first renewal is due a pause after that, which is before the deadline, or at once.
func Opened(r Rhythm, sent, now, pause time.Duration, shared bool) Session {
	return Session{Rhythm: r, Deadline: r.Deadline(sent), Next: max(now, sent+pause), Shared: shared}
}

// SessionKind is a kind of event of a session.
type SessionKind uint8

const (
	// Clock means: the clock was read, by a timer or a caller.
	Clock SessionKind = iota
	// Together means: another session of the client renews now.
	Together
	// Renewed means: a member answered the renewal, in Term, with the TTL of Rhythm. An answer
	// without a term, with Term 0, counts without confirmation.
	Renewed
	// Confirmed means: a majority has answered, in Term.
	Confirmed
	// Failed means: every copy of the request under way has failed, or its outcome is not known.
	// Err is the reason.
	Failed
	// Gone means: the server answered that the lease does not exist. Err is that answer.
	Gone
	// Rested means: the length of the rest is known: Pause.
	Rested
	// Closed means: the user ends the session, and the lease is to be revoked.
	Closed
	// Abandoned means: the user ends the session and leaves the lease alone.
	Abandoned
	// Forfeited means: the session must end as lost, because the user requests it, or because the
	// TTL that etcd grants now is unusable. Err is the reason.
	Forfeited

	sessionKinds
)

// String returns the name.
func (k SessionKind) String() string {
	return [sessionKinds]string{
		"Clock", "Together", "Renewed", "Confirmed", "Failed", "Gone", "Rested", "Closed", "Abandoned", "Forfeited",
	}[k]
}

// SessionEvent is what a session receives.
type SessionEvent struct {
	Kind SessionKind
	// Now is a clock reading from after the event.
	Now time.Duration
	// Silent is why the application does not count as alive: then nothing is renewed. nil: it does.
	Silent error
	Rhythm Rhythm
	Term   uint64
	Pause  time.Duration
	Err    error
}

// SessionEffects are the actions after a step, in the order of the fields.
type SessionEffects struct {
	// Ended is true if the session has ended: its context ends first. Revoke is true if the lease
	// is to be revoked.
	Ended, Revoke bool
	// Renewed is true if a renewal counts, Recovered if it does after failures, AtRisk if the first
	// attempt in a row has failed.
	Renewed, Recovered, AtRisk bool
	// Renew and Confirm are requests to send. Again is true if the request under way is to be sent
	// a second time beside the first. All have this time-out.
	Renew, Confirm, Again bool
	Timeout               time.Duration
	// Pause is true if Rested must come: after failures with the pause for their number.
	Pause bool
	// Timer is the reading at which Clock must come at the latest; 0 once the session has ended.
	Timer time.Duration
}

var (
	errNoRenewal = errors.New("no renewal was confirmed before the deadline")
	errReplaced  = errors.New("the member that answered the renewal may not have been etcd's leader any more")
)

// Replaced returns an error if the member that answered a renewal in a Raft term may have been
// replaced as etcd's leader when it did: a majority that was asked afterwards has answered in a
// later term.
func Replaced(renewal, majority uint64) error {
	if majority <= renewal {
		return nil
	}
	return fmt.Errorf("%w: its Raft term is %d, the majority's %d", errReplaced, renewal, majority)
}

// StepSession returns the state after an event and the effects to carry out.
func StepSession(s Session, e SessionEvent) (Session, SessionEffects) {
	next := s
	if e.Now >= s.Deadline && e.Kind < Closed && s.Stage != Ended {
		// This comes first: a reply may have waited in a buffer while this process was stopped
		// (G3).
		next.expire(e)
	} else {
		SessionTable[s.Stage][e.Kind].Do(&next, e)
	}
	return next, sessionBetween(&s, &next, e.Now)
}

func sessionBetween(before, after *Session, now time.Duration) (e SessionEffects) {
	moved := after.Stage != before.Stage
	if after.Stage == Ended {
		return SessionEffects{Ended: moved, Revoke: moved && after.Revoke}
	}
	e.Timer = after.Deadline
	switch after.Stage {
	case Resting:
		e.Timer = min(e.Timer, after.Next)
	case Renewing, Confirming:
		e.Renew, e.Confirm = moved && after.Stage == Renewing, moved && after.Stage == Confirming
		e.Again = after.Hedged && !before.Hedged
		e.Timeout = after.Asked + after.Timeout - now
		if e.Timer = min(e.Timer, after.Asked+after.Timeout); !after.Hedged {
			e.Timer = min(e.Timer, after.Asked+after.Timeout/2)
		}
	case Pausing:
		e.Pause = moved
		e.Renewed = moved && after.Failures == 0
		e.Recovered = e.Renewed && before.Failures > 0
		e.AtRisk = after.Failures > 0 && before.Failures == 0
	case Ended, stages:
	}
	return e
}
