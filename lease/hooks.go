package lease

import "time"

// Hooks are told what happens to a session. Each may be nil. They are called one
// at a time, in order, on a goroutine of their own: a hook may block or call back
// into the session, but then later calls wait for it, and past a thousand waiting
// ones they are dropped, which Session.Dropped counts. A hook must not call Close or
// wait for it. Package hooks has several told at once, and a logger.
type Hooks struct {
	// Retrying is called after each failed attempt to open, to resume or to revoke that
	// another one follows: before Opened, and after Lost. Open and Resume do not wait for
	// it when they return an error. Of renewals, AtRisk is called.
	Retrying func(RetryingEvent)
	// Opened is called once, when the session has its lease, before all that follow here.
	Opened func(OpenedEvent)
	// Renewed is called after each renewal that the server confirmed in time.
	Renewed func(RenewedEvent)
	// AtRisk is called when the first of a row of renewals fails.
	AtRisk func(AtRiskEvent)
	// Recovered is called when a renewal succeeds after AtRisk.
	Recovered func(RenewedEvent)
	// Beat is called for each heartbeat, with what came of it.
	Beat func(BeatEvent)
	// Lost is called once, when the session ends, Close and Abandon included.
	Lost func(LostEvent)
}

// RetryingEvent tells of an attempt that failed and is repeated.
type RetryingEvent struct {
	// Op is what is attempted: "open session", "resume session" or "revoke".
	Op string
	// Attempt counts the attempts of one call, from 1.
	Attempt int
	// Err is why it failed. Where Config.Lease is a *clientv3.Client without a connection,
	// it also says why there is none, such as a certificate that was not accepted.
	Err error
	// Pause is the time from At to the next attempt.
	Pause time.Duration
	// At is when the attempt had failed; the hook runs later.
	At time.Time
}

// OpenedEvent tells of a session that has its lease.
type OpenedEvent struct {
	// Session is the session itself. What it says when the hook runs is newer than
	// the event: it may have ended.
	Session *Session
}

// RenewedEvent tells of a confirmed renewal.
type RenewedEvent struct {
	// Latency is the time from sending the request to reading its reply.
	Latency time.Duration
	// TTL is what the server granted.
	TTL time.Duration
	// Slack is the certain time that was left when the reply was read, before
	// it counted: how close it came.
	Slack time.Duration
}

// AtRiskEvent tells that a renewal failed.
type AtRiskEvent struct {
	// Remaining is the certain time left.
	Remaining time.Duration
	// Err is why the renewal failed.
	Err error
}

// BeatEvent tells what came of a heartbeat.
type BeatEvent struct {
	// Latency is the time from its sending to the news of it.
	Latency time.Duration
	// Left is the time for which nobody evicts, from then on; 0: who leads is suspended.
	Left time.Duration
	// Err is why it failed; nil: etcd has it.
	Err error
	// Mute says that there will be no more: etcd does not let this user write the key, and has never
	// taken a beat. The session goes on as if it had no heartbeats.
	Mute bool
}

// LostEvent tells that the session ended.
type LostEvent struct {
	// Cause is what Session.Err returns from now on.
	Cause error
}
