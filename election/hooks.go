package election

import (
	"time"

	"github.com/eldest-io/eldest"
)

// Hooks are told what happens to a candidate. Each may be nil. They are called
// one at a time, in order, on a goroutine of their own, so a hook may block or
// call back into the library; later calls wait for it, and past a thousand
// waiting ones they are dropped, which Candidate.Dropped counts. They report the past:
// when a hook runs, the candidate may be further on. A hook must not call Close. Package
// hooks has several told at once, and a logger.
type Hooks struct {
	// Registered: the candidate stands in the queue.
	Registered func(RegisteredEvent)
	// Waiting: the candidate waits for a predecessor; again for each new one.
	Waiting func(WaitingEvent)
	// Won: the candidate leads.
	Won func(WonEvent)
	// Suspended: the tenure's context has ended because no heartbeat was acknowledged in time;
	// the key stands. Won follows when a campaign has proven it, or Ended.
	Suspended func(SuspendedEvent)
	// Evicted: the candidate has deleted the key of its predecessor, whose heartbeats had
	// stopped.
	Evicted func(EvictedEvent)
	// Ended: a candidacy or tenure is over; exactly once for each Registered, at the end
	// of the key and not at a drain, which leaves it standing.
	Ended func(EndedEvent)
	// Foreign: a key in the election's range is not a candidate's and was
	// ignored. Candidates of etcd's own package wait behind it.
	Foreign func(ForeignEvent)
	// Interrupted: the watch of the own key or of a predecessor broke, or was found to
	// be deaf, and is opened again. Until it is, the news of that key may be late.
	Interrupted func(InterruptedEvent)
	// Retrying: an attempt to ask etcd for something failed, and another one follows. It may
	// be called before Registered.
	Retrying func(RetryingEvent)
}

// RegisteredEvent tells of a place in the queue.
type RegisteredEvent struct {
	// Candidate is the candidate itself, for Status and Dropped. What it says when the
	// hook runs is newer than the event.
	Candidate     *Candidate
	Election, Key string
	Token         eldest.Token
	// Queue is the number of keys in the election's range, the own one included; 0 where
	// that was not learnt.
	Queue int64
	// Predecessor is the next older candidate's key; empty if there is none, or it was not
	// learnt.
	Predecessor string
	// Adopted says that the key was there from an attempt whose reply was lost, or
	// from an earlier life of the session. Queue is then 0.
	Adopted bool
	// At is when the candidate knew of it; the hook runs later.
	At time.Time
}

// WaitingEvent tells for whom the candidate waits.
type WaitingEvent struct {
	Election, Key string
	Token         eldest.Token
	Predecessor   eldest.Candidate
	// At is when the candidate knew of it; the hook runs later.
	At time.Time
}

// WonEvent tells of a win.
type WonEvent struct {
	Election, Key string
	Token         eldest.Token
	// Revision is the etcd revision of the proof.
	Revision int64
	// Waited is the time from the place in the queue (RegisteredEvent.At) to the win.
	Waited time.Duration
	// Proof is the last part of it, from the news that the last predecessor was gone to
	// the win: what this side and etcd's answer took of the hand-over. 0 if there was
	// no predecessor to wait for.
	Proof time.Duration
	// Resumed says that the candidate leads on, with the same token, after Suspended.
	Resumed bool
	// At is when the win was decided; the hook runs later.
	At time.Time
}

// SuspendedEvent tells of a tenure that is suspended.
type SuspendedEvent struct {
	Election, Key string
	Token         eldest.Token
	// Cause is why: it wraps eldest.ErrSuspended.
	Cause error
	// At is when the leading context ended; the hook runs later.
	At time.Time
}

// EvictedEvent tells of a predecessor that was evicted.
type EvictedEvent struct {
	// Key is the own one.
	Election, Key string
	Evicted       eldest.Candidate
	// Silence is the time from the receipt of its last heartbeat to the news that its key is deleted.
	Silence time.Duration
	// At is when that was known; the hook runs later.
	At time.Time
}

// EndedEvent tells of the end of a candidacy or tenure.
type EndedEvent struct {
	Election, Key string
	Token         eldest.Token
	// Led says whether it was a tenure.
	Led bool
	// Cause is why it ended; eldest.ErrRequeued if a new one follows in the same
	// campaign.
	Cause error
	// Drained is when Drain ended the leading context while the key still stood; zero for all
	// other ends.
	Drained time.Time
	// At is when the candidacy had ended and the key was about to go, or gone, which is
	// also the end of the leading context unless it was drained, or suspended; the hook runs later.
	At time.Time
}

// ForeignEvent tells of a foreign key.
type ForeignEvent struct {
	Election, Key string
}

// InterruptedEvent tells of a watch that is opened again.
type InterruptedEvent struct {
	Election, Key string
	// Reason is why the old one ended.
	Reason error
	// At is when that was known; the hook runs later.
	At time.Time
}

// RetryingEvent tells of an attempt that failed and is repeated.
type RetryingEvent struct {
	Election, Key string
	// Op is what is attempted: "register" (with a key that is adopted, its value as well),
	// "find predecessor", "read queue" (for Config.ShouldYield), "remove key", or "watch" (a read
	// with which a watch begins or is checked).
	Op string
	// Attempt counts the attempts in a row, from 1.
	Attempt int
	// Err is why it failed. Where Config.KV is a *clientv3.Client without a connection, it
	// also says why there is none, such as a certificate that was not accepted.
	Err error
	// Pause is the time from At to the next attempt.
	Pause time.Duration
	// At is when the attempt had failed; the hook runs later.
	At time.Time
}

// retrying returns what is called for each failed attempt at op; nil where there is no hook.
func (c *Candidate) retrying(op string) func(attempt int, err error, pause time.Duration) {
	if c.cfg.Hooks.Retrying == nil {
		return nil
	}
	return func(attempt int, err error, pause time.Duration) {
		call(c, c.cfg.Hooks.Retrying, RetryingEvent{
			Election: c.cfg.Election, Key: c.key, Op: op, Attempt: attempt, Err: err, Pause: pause, At: time.Now(),
		})
	}
}

// call hands an event to a hook, if there is one.
func call[E any](c *Candidate, hook func(E), event E) {
	if hook != nil {
		c.hooks.Do(func() { hook(event) })
	}
}
