package core

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// Stage is what a session does.
type Stage uint8

const (
	// Resting means: until Session.Next.
	Resting Stage = iota
	// Renewing means: the renewal is under way.
	Renewing
	// Confirming means: it was answered, and a majority is asked whether the member that answered
	// still led etcd when it did (decision 0015).
	Confirming
	// Pausing means: the attempt is over, and it is being found out how long to rest.
	Pausing
	// Ended means: the lease is not certain any more. There is no way back.
	Ended

	stages
)

// String returns the name in lower case.
func (s Stage) String() string {
	return [stages]string{"resting", "renewing", "confirming", "pausing", "ended"}[s]
}

// Stages are all stages, in the order of the constants.
func Stages() iter.Seq[Stage] { return all(stages) }

// Rhythm is what follows from a granted TTL.
type Rhythm struct {
	// TTL is what the server granted. Margin is subtracted from it: it covers clocks whose
	// rates differ by less than Margin / TTL.
	TTL, Margin time.Duration
	// Every is the longest time between two renewals. A renewal may be sent a tenth of it earlier.
	Every time.Duration
	// Timeout bounds a request.
	Timeout time.Duration
}

// Deadline is the first instant at which a lease is not certain that was granted or renewed by
// a request that was sent after the reading sent: at or before the instant at which a server
// may expire it, as long as the rates of the clocks differ by less than Margin / TTL.
func (r Rhythm) Deadline(sent time.Duration) time.Duration { return sent + r.TTL - r.Margin }

// Session is the state of one session, a plain value. All instants are readings of the
// session's clock, which goes on while the machine sleeps.
//
// Invariants:
//   - Deadline is at or before the instant at which a server may expire the lease.
//   - A request is under way while Renewing and Confirming, or the same one twice, and none else.
type Session struct {
	Stage  Stage
	Rhythm Rhythm
	// Deadline is the first instant at which the lease is not certain.
	Deadline time.Duration
	// Next is when the next renewal is to be sent; while Resting.
	Next time.Duration
	// Sent is a reading from before the renewal under way was sent.
	Sent time.Duration
	// Asked is a reading from before the request of this stage was sent, Timeout how long it
	// may take. Hedged says that it was sent once more.
	Asked, Timeout time.Duration
	Hedged         bool
	// Granted and Term are of the renewal that is being confirmed.
	Granted Rhythm
	Term    uint64
	// Failures counts failed attempts in a row. While there are any the session is at risk. Reason
	// says why the last one failed.
	Failures int
	Reason   error
	// Shared says that others renew the lease as well: it is not revoked when this session
	// loses it.
	Shared bool
	// Revoke says that the session has ended and its lease is to be revoked.
	Revoke bool
	// Cause says why the session ended; nil before.
	Cause error
}

// Opened is a session whose lease was granted or renewed by a request that was sent after
// the reading sent; the first renewal is due after a pause.
func Opened(r Rhythm, sent, now, pause time.Duration, shared bool) Session {
	return Session{Rhythm: r, Deadline: r.Deadline(sent), Next: now + pause, Shared: shared}
}

// SessionKind is a kind of event of a session.
type SessionKind uint8

const (
	// Clock means: somebody has looked at the clock, a timer or a caller.
	Clock SessionKind = iota
	// Together means: another session of the client renews now.
	Together
	// Renewed means: a member answered the renewal, in Term, with the TTL of Rhythm. Term 0 is an
	// answer without one, which counts as it is.
	Renewed
	// Confirmed means: a majority has answered, in Term.
	Confirmed
	// Failed means: all that was sent of the request under way has failed, or its outcome is not
	// known. Err says why.
	Failed
	// Gone means: the server says that the lease does not exist. Err says so, too.
	Gone
	// Rested means: it is known for how long to rest: Pause.
	Rested
	// Closed means: the user ends the session and has the lease revoked.
	Closed
	// Abandoned means: the user ends the session and leaves the lease alone.
	Abandoned
	// Forfeited means: the session is to end as lost, for the user says so, or because the TTL
	// that etcd grants now cannot be worked with. Err says why.
	Forfeited

	sessionKinds
)

// String returns the name.
func (k SessionKind) String() string {
	return [sessionKinds]string{
		"Clock", "Together", "Renewed", "Confirmed", "Failed", "Gone", "Rested", "Closed", "Abandoned", "Forfeited",
	}[k]
}

// SessionKinds are all kinds of events of a session, in the order of the constants.
func SessionKinds() iter.Seq[SessionKind] { return all(sessionKinds) }

// SessionEvent is what a session learns.
type SessionEvent struct {
	Kind SessionKind
	// Now is a reading from after it was learnt.
	Now time.Duration
	// Silent says why the application is not believed to be alive: then nothing is renewed.
	Silent error
	Rhythm Rhythm
	Term   uint64
	Pause  time.Duration
	Err    error
}

// SessionEffects are what has to be done after a step, in the order of the fields.
type SessionEffects struct {
	// Ended says that the session has ended: its context ends first. Revoke: the lease is to
	// be revoked.
	Ended, Revoke bool
	// Renewed says that a renewal counts, Recovered that it does after failures, AtRisk that
	// the first attempt in a row has failed.
	Renewed, Recovered, AtRisk bool
	// Renew and Confirm are requests to send, and Again says that the request under way is to be
	// sent once more beside the first, all with this time-out.
	Renew, Confirm, Again bool
	Timeout               time.Duration
	// Pause says that Rested is to come: after a failure with a pause for so many Failures.
	Pause bool
	// Timer is the reading at which Clock is to come at the latest; 0 once it has ended.
	Timer time.Duration
}

var (
	errNoRenewal = errors.New("no renewal was confirmed before the deadline")
	errReplaced  = errors.New("the member that confirmed the renewal may have been replaced as etcd's leader before")
)

// Replaced returns an error if the member that answered a renewal in a Raft term may have been
// replaced as etcd's leader when it did: a majority that was asked afterwards has answered in
// a later one.
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
		// Before anything else is believed: a reply may have waited in a buffer while this
		// process was stopped (G3).
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
