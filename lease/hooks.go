package lease

import "time"

// Hooks are called for the events of a session. Each may be nil. They are called one at a time, in
// order, on a goroutine of their own, so a hook may block or call back into the session; later
// calls wait for it. While a thousand calls wait, further calls are dropped; Session.Dropped counts
// them. A hook must not call Close or wait for it. Package hooks combines several hooks, and has a
// logger.
type Hooks struct {
	// Retrying is called after each failed attempt to open, resume or revoke that will be repeated:
	// before Opened, and after Lost. Open and Resume do not wait for it when they return an error.
	// For failed renewals AtRisk is called instead.
	Retrying func(RetryingEvent)
	// Opened is called once, when the session has its lease, before all hooks below.
	Opened func(OpenedEvent)
	// Renewed is called after each renewal that the server confirmed in time.
	Renewed func(RenewedEvent)
	// AtRisk is called for the first of a row of failed renewals.
	AtRisk func(AtRiskEvent)
	// Recovered is called when a renewal succeeds after AtRisk.
	Recovered func(RenewedEvent)
	// Heartbeat is called for each heartbeat, with its outcome.
	Heartbeat func(HeartbeatEvent)
	// Lost is called once, when the session ends, also by Close and Abandon.
	Lost func(LostEvent)
}

// RetryingEvent reports a failed attempt that is repeated.
type RetryingEvent struct {
	// Op is the operation: "open session", "resume session" or "revoke".
	Op string
	// Attempt counts the attempts of one call, from 1.
	Attempt int
	// Err is why it failed. If Config.Lease is a *clientv3.Client without a connection, it also
	// names the reason, such as a certificate that was not accepted.
	Err error
	// Pause is the time from At to the next attempt.
	Pause time.Duration
	// At is when the attempt had failed; the hook runs later.
	At time.Time
}

// OpenedEvent reports that a session has its lease.
type OpenedEvent struct {
	// Session is the session itself. What it returns when the hook runs is newer than the event: it
	// may have ended.
	Session *Session
}

// RenewedEvent reports a confirmed renewal.
type RenewedEvent struct {
	// Latency is the time from sending the request to reading its reply.
	Latency time.Duration
	// TTL is the TTL that the server granted.
	TTL time.Duration
	// Slack is how long the lease was still certain when the reply was read, not counting this
	// renewal.
	Slack time.Duration
}

// AtRiskEvent reports that a renewal failed.
type AtRiskEvent struct {
	// Remaining is how long the lease is still certain.
	Remaining time.Duration
	// Err is why the renewal failed.
	Err error
}

// HeartbeatEvent reports the outcome of a heartbeat.
type HeartbeatEvent struct {
	// Latency is the time from its sending until its outcome is known.
	Latency time.Duration
	// Left is how long no candidate evicts from then on; 0 means that the leader is suspended.
	Left time.Duration
	// Err is why it failed; nil if etcd has stored it.
	Err error
	// NotPermitted means that no more heartbeats will be sent: etcd does not permit this user to write the
	// key, and has never stored a heartbeat. The session continues as if it had no heartbeats.
	NotPermitted bool
}

// LostEvent reports that the session ended.
type LostEvent struct {
	// Cause is what Session.Err returns from now on.
	Cause error
}
