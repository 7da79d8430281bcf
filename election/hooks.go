package election

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/serial"
)

// Hooks are called for the events of a candidate. Each may be nil. They are called one at a time,
// in order, on a goroutine of their own, so a hook may block or call back into the library; later
// calls wait for it. While a thousand calls wait, further calls are dropped; Candidate.Dropped
// counts them. Hooks report the past: when a hook runs, the candidate may have changed again. A
// hook must not call Close. Package hooks combines several hooks, and has a logger.
type Hooks struct {
	// Registered: the candidate is queued.
	Registered func(RegisteredEvent)
	// Waiting: the candidate waits for a predecessor; again for each new one.
	Waiting func(WaitingEvent)
	// Won: the candidate leads.
	Won func(WonEvent)
	// Suspended: the tenure's context has ended because no heartbeat was acknowledged in time; the
	// key remains. Next is Won, when a campaign has proven the key to exist still, or Ended.
	Suspended func(SuspendedEvent)
	// Evicted: the candidate has deleted the key of its predecessor, whose heartbeats had stopped.
	Evicted func(EvictedEvent)
	// Ended: a candidacy or tenure is over; exactly once for each Registered, at the end of the key
	// and not at a drain, which keeps the key.
	Ended func(EndedEvent)
	// Foreign: a key in the election's range is not a candidate's and was ignored. Candidates of
	// etcd's own package wait behind it.
	Foreign func(ForeignEvent)
	// Interrupted: the watch of the candidate's or a predecessor's key broke, or failed a liveness
	// check, and is opened again. Until then events of that key may be late.
	Interrupted func(InterruptedEvent)
	// Retrying: a request to etcd failed and will be repeated. It may be called before Registered.
	Retrying func(RetryingEvent)
}

// RegisteredEvent reports a position in the queue.
type RegisteredEvent struct {
	// Candidate is the candidate itself, for Status and Dropped. What these return when the hook
	// runs is newer than the event.
	Candidate     *Candidate
	Election, Key string
	Token         eldest.Token
	// Queue is the number of keys in the election's range, including its own; 0 if it is unknown.
	Queue int64
	// Predecessor is the next older candidate's key; empty if there is none, or it is unknown.
	Predecessor string
	// Adopted means that the key existed already, from an attempt whose reply was lost, or from an
	// earlier session of the lease. Queue is then 0.
	Adopted bool
	// At is when the candidate received the reply; the hook runs later.
	At time.Time
}

// WaitingEvent reports which candidate the candidate waits for.
type WaitingEvent struct {
	Election, Key string
	Token         eldest.Token
	Predecessor   eldest.Candidate
	// At is when the wait began; the hook runs later.
	At time.Time
}

// WonEvent reports a win.
type WonEvent struct {
	Election, Key string
	Token         eldest.Token
	// Revision is the etcd revision of the proof.
	Revision int64
	// Waited is the time from the registration (RegisteredEvent.At) to the win.
	Waited time.Duration
	// Proof is the last part of Waited, from the receipt of the deletion of the last predecessor's
	// key to the win: the time that this process and etcd's answer took in the hand-over. 0 if
	// there was no predecessor to wait for, and if Resumed.
	Proof time.Duration
	// Resumed means that the candidate continues to lead, with the same token, after Suspended.
	Resumed bool
	// At is when the win was decided; the hook runs later.
	At time.Time
}

// SuspendedEvent reports that a tenure is suspended.
type SuspendedEvent struct {
	Election, Key string
	Token         eldest.Token
	// Cause is why: it wraps eldest.ErrSuspended.
	Cause error
	// At is when the leading context ended; the hook runs later.
	At time.Time
}

// EvictedEvent reports that a predecessor was evicted.
type EvictedEvent struct {
	// Key is the key of the candidate that evicted it.
	Election, Key string
	Evicted       eldest.Candidate
	// Silence is the time from its last heartbeat to the confirmed deletion, both as received.
	Silence time.Duration
	// At is when that reply was received; the hook runs later.
	At time.Time
}

// EndedEvent reports the end of a candidacy or tenure.
type EndedEvent struct {
	Election, Key string
	Token         eldest.Token
	// Led reports whether it was a tenure.
	Led bool
	// Cause is why it ended; eldest.ErrRequeued if a new candidacy follows in the same campaign.
	Cause error
	// Drained is when Drain ended the leading context and kept the key; zero for all other ends.
	Drained time.Time
	// At is when the candidacy had ended and the key was deleted or about to be. That is also the
	// end of the leading context unless it was drained or suspended. The hook runs later.
	At time.Time
}

// ForeignEvent reports a foreign key.
type ForeignEvent struct {
	Election, Key string
}

// InterruptedEvent reports that a watch is opened again.
type InterruptedEvent struct {
	Election, Key string
	// Reason is why the old one ended.
	Reason error
	// At is when the end was noticed; the hook runs later.
	At time.Time
}

// RetryingEvent reports a failed attempt that is repeated.
type RetryingEvent struct {
	Election, Key string
	// Op is the operation: "register" (which also writes the value of an adopted key), "find
	// predecessor", "read queue" (for Config.ShouldYield), "remove key", or "watch" (a read with
	// which a watch begins or is checked).
	Op string
	// Attempt counts the attempts in a row, from 1.
	Attempt int
	// Err is why it failed. If Config.KV is a *clientv3.Client without a connection, it also has
	// the reason, such as a certificate that was not accepted.
	Err error
	// Pause is the time from At to the next attempt.
	Pause time.Duration
	// At is when the attempt had failed; the hook runs later.
	At time.Time
}

// retrying returns the function to call for each failed attempt at op; nil if there is no hook.
func (c *Candidate) retrying(op string) func(attempt int, err error, pause time.Duration) {
	if c.cfg.Hooks.Retrying == nil {
		return nil
	}
	return func(attempt int, err error, pause time.Duration) {
		serial.Call(&c.hooks, c.cfg.Hooks.Retrying, RetryingEvent{
			Election: c.cfg.Election, Key: c.key, Op: op, Attempt: attempt, Err: err, Pause: pause, At: time.Now(),
		})
	}
}
