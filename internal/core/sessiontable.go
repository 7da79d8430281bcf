package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
)

// SessionRule is what happens at an event in a stage.
type SessionRule struct {
	// Text describes the rule, for the documentation.
	Text string
	// Do changes the state. It must not keep or change anything else.
	Do func(s *Session, e SessionEvent)
}

// SessionTable has the rule for each stage and each event of a session. Before a rule applies, the
// session ends as lost if its deadline has passed, except at events with which a user ends it.
var SessionTable = [stages][sessionKinds]SessionRule{
	Resting: {
		Clock:    {"renews if that is due; if the application is unresponsive the attempt fails, and nothing is sent", due},
		Together: {"renews if that is due within a tenth of the interval, and the last attempt succeeded", early},
		Renewed:  unasked, Confirmed: unasked, Failed: unasked, Gone: unasked, Rested: unpaused,
		Closed: closeSession, Abandoned: abandonSession, Forfeited: forfeit,
	},
	Renewing: {
		Clock:     {"sends the renewal a second time after half of its time-out, or fails then if the application is unresponsive; fails at the end of the time-out", (*Session).wait},
		Together:  underWay,
		Renewed:   {"asks a majority; without a Raft term the renewal counts", answered},
		Confirmed: unasked, Failed: fails, Rested: unpaused,
		Gone:   {"ends: lost; nothing is left to revoke", func(s *Session, e SessionEvent) { s.lose(e.Err, false) }},
		Closed: closeSession, Abandoned: abandonSession, Forfeited: forfeit,
	},
	Confirming: {
		Clock:    {"asks a second time after half of the time-out; fails at its end", (*Session).wait},
		Together: underWay, Renewed: unasked, Gone: unasked, Rested: unpaused,
		Confirmed: {"the renewal counts from its sending; if the majority has a later Raft term, the renewal has failed", confirmed},
		Failed:    fails,
		Closed:    closeSession, Abandoned: abandonSession, Forfeited: forfeit,
	},
	Pausing: {
		Clock: {"continues", unchanged}, Together: {"continues", unchanged},
		Renewed: unasked, Confirmed: unasked, Failed: unasked, Gone: unasked,
		Rested: {"rests", rested},
		Closed: closeSession, Abandoned: abandonSession, Forfeited: forfeit,
	},
	Ended: {
		Clock: ended, Together: ended, Renewed: ended, Confirmed: ended, Failed: ended, Gone: ended, Rested: ended,
		Closed: ended, Abandoned: ended, Forfeited: ended,
	},
}

// Rules that change nothing, with the reason.
var (
	unasked  = SessionRule{"late, ignored: no such request is under way", unchanged}
	underWay = SessionRule{"continues: a request is under way", unchanged}
	unpaused = SessionRule{"cannot happen: the pause is known", unchanged}
	ended    = SessionRule{"ignored: the session has ended", unchanged}
)

func unchanged(*Session, SessionEvent) {}

// Rules of several stages.
var (
	fails        = SessionRule{"fails: at risk", func(s *Session, e SessionEvent) { s.fail(e.Err) }}
	closeSession = SessionRule{"ends: closed; the lease is revoked", func(s *Session, _ SessionEvent) {
		s.end(fmt.Errorf("%w: the session was closed", eldest.ErrClosed), true)
	}}
	abandonSession = SessionRule{"ends: closed; the lease is left alone", func(s *Session, _ SessionEvent) {
		s.end(fmt.Errorf("%w: the session was abandoned", eldest.ErrClosed), false)
	}}
	forfeit = SessionRule{"ends: lost; the lease is revoked unless it is shared", func(s *Session, e SessionEvent) { s.lose(e.Err, !s.Shared) }}
)

// rested begins a pause: after a failure from now on; after a renewal, from its sending on as the deadline,
// so that the next one is due before that.
func rested(s *Session, e SessionEvent) {
	from := e.Now
	if s.Failures == 0 {
		from = s.Deadline - s.Rhythm.Deadline(0)
	}
	// At the latest until the deadline: the sum must not overflow.
	s.Stage, s.Next = Resting, max(e.Now, from+min(e.Pause, s.Deadline-from))
}

func due(s *Session, e SessionEvent) {
	if e.Now >= s.Next {
		s.renew(e)
	}
}

// early joins a renewal that another session of the client sends, so that one request confirms
// both.
func early(s *Session, e SessionEvent) {
	if s.Failures == 0 && e.Now >= s.Next-s.Rhythm.Every/10 {
		s.renew(e)
	}
}

func (s *Session) renew(e SessionEvent) {
	if e.Silent != nil {
		s.fail(e.Silent)
		return
	}
	s.Sent = e.Now
	s.ask(Renewing, e.Now)
}

// ask starts the request of a stage.
func (s *Session) ask(stage Stage, now time.Duration) {
	s.Stage, s.Asked, s.Timeout, s.Hedged = stage, now, s.timeout(s.Deadline-now), false
}

// wait handles the time-out of a request. After half of the time the request is sent a second time,
// to another member: if one of three members does not respond, that must cost half an attempt and
// not the lease (decision 0020).
func (s *Session) wait(e SessionEvent) {
	switch {
	case e.Now >= s.Asked+s.Timeout:
		s.fail(fmt.Errorf("%w within %v", eldest.ErrUnavailable, s.Timeout))
	case s.Hedged || e.Now < s.Asked+s.Timeout/2:
	case s.Stage == Renewing && e.Silent != nil:
		s.fail(e.Silent)
	default:
		s.Hedged = true
	}
}

func answered(s *Session, e SessionEvent) {
	s.Granted, s.Term = e.Rhythm, e.Term
	if e.Term == 0 {
		s.count(e)
		return
	}
	s.ask(Confirming, e.Now)
}

func confirmed(s *Session, e SessionEvent) {
	if err := Replaced(s.Term, e.Term); err != nil {
		s.fail(err)
		return
	}
	s.count(e)
}

// count counts the renewal from its sending, not from its answer. The newest answer counts even if
// its TTL is shorter: a server that lowered the TTL expires the lease by the lower one.
func (s *Session) count(e SessionEvent) {
	s.Rhythm, s.Deadline = s.Granted, s.Granted.Deadline(s.Sent)
	s.Failures, s.Reason = 0, nil
	s.pause()
	if e.Now >= s.Deadline {
		s.expire(e)
	}
}

func (s *Session) fail(err error) {
	if s.Stage == Confirming {
		err = fmt.Errorf("no majority confirmed the renewal: %w", err)
	}
	s.Failures, s.Reason = s.Failures+1, err
	s.pause()
}

// pause ends an attempt.
func (s *Session) pause() {
	s.Stage, s.Sent, s.Asked, s.Timeout, s.Hedged, s.Granted, s.Term = Pausing, 0, 0, 0, false, Rhythm{}, 0
}

// expire ends a session whose deadline has passed.
func (s *Session) expire(e SessionEvent) {
	err := errNoRenewal
	if why := cmp.Or(e.Silent, s.Reason); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	s.lose(err, !s.Shared)
}

func (s *Session) lose(why error, revoke bool) {
	cause := eldest.ErrSessionLost
	if why != nil {
		cause = fmt.Errorf("%w: %w", cause, why)
	}
	s.end(cause, revoke)
}

func (s *Session) end(cause error, revoke bool) {
	s.pause()
	s.Stage, s.Cause, s.Revoke = Ended, cause, revoke
}

// timeout returns the time-out of a request. It grows after failures, because the replies may be
// slow and not lost. But no attempt, which is two requests, takes more than half of the time that
// is left, so that another one always fits.
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
