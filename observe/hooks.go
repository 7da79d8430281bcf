package observe

import (
	"time"
)

// Hooks are called for events of an observer's watch; Subscribe reports what the watch receives.
// Each may be nil. They are called one at a time, in order, on a goroutine of their own, which
// Config.Foreign shares. A hook that blocks delays only later calls and Close; if more than a
// thousand calls wait, further ones are dropped, which Observer.Dropped counts. A hook must not
// call Close. Package hooks combines several Hooks, and has a logger.
type Hooks struct {
	// Started is called first, and once: the observer was made.
	Started func(StartedEvent)
	// Interrupted is called when the watch broke, or could not be opened, and is tried again. Until
	// etcd responds, the state is Unknown.
	Interrupted func(InterruptedEvent)
	// Retrying is called when a read that opens or checks a watch failed and is repeated.
	// Interrupted is called for the watch as a whole, when several reads have failed.
	Retrying func(RetryingEvent)
	// Ended is called last, and once: the observer was closed, or etcd refused permanently.
	Ended func(EndedEvent)
}

// StartedEvent describes a new observer.
type StartedEvent struct {
	// Observer is the observer itself. When the hook runs, its state may be newer than the event.
	Observer *Observer
}

// InterruptedEvent describes a watch that is opened again.
type InterruptedEvent struct {
	Election string
	// Reason is why the previous watch ended.
	Reason error
	// At is when the reason was detected; the hook runs later.
	At time.Time
}

// RetryingEvent describes an attempt that failed and is repeated.
type RetryingEvent struct {
	Election string
	// Op is the operation: "watch".
	Op string
	// Attempt counts the consecutive attempts, from 1.
	Attempt int
	// Err is why it failed. If Config.KV is a *clientv3.Client without a connection, Err also
	// contains the reason for that, such as a certificate that was not accepted.
	Err error
	// Pause is the time from At to the next attempt.
	Pause time.Duration
	// At is when the attempt failed; the hook runs later.
	At time.Time
}

// EndedEvent describes the end of an observer.
type EndedEvent struct {
	Observer *Observer
	// Cause is the error that subscriptions return from now on.
	Cause error
}

// Election returns the election's name.
func (o *Observer) Election() string { return o.cfg.Election }

// Queue returns the number of candidates, including the leader; ok is false while it is unknown.
// Queue never blocks and sends nothing.
func (o *Observer) Queue() (n int, ok bool) {
	length := o.queue.Load()
	return int(max(length, 0)), length >= 0
}

// Subscriptions returns how many subscriptions have been made.
func (o *Observer) Subscriptions() int64 { return o.subscriptions.Load() }

// Dropped returns how many calls of Config.Foreign and Config.Hooks have been dropped because a
// thousand waited behind one that blocks.
func (o *Observer) Dropped() int { return o.hooks.Dropped() }
