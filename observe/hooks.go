package observe

import "time"

// Hooks are told what happens to an observer's watch; what the watch sees is for
// Subscribe. Each may be nil. They are called one at a time, in order, on a goroutine of
// their own, which Config.Foreign shares: a hook that blocks holds up nothing but later
// calls and Close, and past a thousand waiting ones they are dropped, which
// Observer.Dropped counts. A hook must not call Close. Package hooks has several told at
// once, and a logger.
type Hooks struct {
	// Started: the observer was made. First, and once.
	Started func(StartedEvent)
	// Interrupted: the watch broke, or was not to be had, and is tried again. Until
	// etcd answers, the state is Unknown.
	Interrupted func(InterruptedEvent)
	// Retrying: a read with which a watch begins or is checked failed, and another one
	// follows. Interrupted is called for the watch as a whole, when several have failed.
	Retrying func(RetryingEvent)
	// Ended: the observer was closed, or etcd refused for good. Last, and once.
	Ended func(EndedEvent)
}

// StartedEvent tells of a new observer.
type StartedEvent struct {
	// Observer is the observer itself. What it says when the hook runs is newer than
	// the event.
	Observer *Observer
}

// InterruptedEvent tells of a watch that is opened again.
type InterruptedEvent struct {
	Election string
	// Reason is why the old one ended.
	Reason error
	// At is when that was known; the hook runs later.
	At time.Time
}

// RetryingEvent tells of an attempt that failed and is repeated.
type RetryingEvent struct {
	Election string
	// Op is what is attempted: "watch".
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

// EndedEvent tells of the end of an observer.
type EndedEvent struct {
	Observer *Observer
	// Cause is what subscriptions return from now on.
	Cause error
}

// tell hands an event to a hook, if there is one.
func tell[E any](o *Observer, hook func(E), event E) {
	if hook != nil {
		o.hooks.Do(func() { hook(event) })
	}
}

// Election returns the election's name.
func (o *Observer) Election() string { return o.cfg.Election }

// Queue returns how many candidates stand, the leader included; ok is false while that
// is unknown. It never blocks and sends nothing.
func (o *Observer) Queue() (n int, ok bool) {
	length := o.queue.Load()
	return int(max(length, 0)), length >= 0
}

// Subscriptions returns how many subscriptions were made so far.
func (o *Observer) Subscriptions() int64 { return o.subscriptions.Load() }

// Dropped returns how many calls of Config.Foreign and Config.Hooks were dropped so far,
// because a thousand waited behind one that blocks.
func (o *Observer) Dropped() int { return o.hooks.Dropped() }
