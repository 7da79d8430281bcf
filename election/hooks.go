package election

import (
	"time"

	"github.com/eldest-io/eldest"
)

// Hooks are told what happens to a candidate. Each may be nil. They are called
// one at a time, in order, on a goroutine of their own, so a hook may block or
// call back into the library; later calls wait for it, and past a thousand
// waiting ones they are dropped. They report the past: when a hook runs, the
// candidate may be further on. A hook must not call Close.
type Hooks struct {
	// Registered: the candidate stands in the queue.
	Registered func(RegisteredEvent)
	// Waiting: the candidate waits for a predecessor; again for each new one.
	Waiting func(WaitingEvent)
	// Won: the candidate leads.
	Won func(WonEvent)
	// Ended: a candidacy or tenure is over; exactly once for each Registered.
	Ended func(EndedEvent)
	// Foreign: a key in the election's range is not a candidate's and was
	// ignored. Candidates of etcd's own package wait behind it.
	Foreign func(ForeignEvent)
}

// RegisteredEvent tells of a place in the queue.
type RegisteredEvent struct {
	Election, Key string
	Token         eldest.Token
	// Queue is the number of keys in the election's range, the own one included.
	Queue int64
	// Predecessor is the next older candidate's key; empty if there is none.
	Predecessor string
	// Adopted says that the key was there from an attempt whose reply was lost, or
	// from an earlier life of the session. Queue is then 0 and Predecessor empty:
	// Waiting tells.
	Adopted bool
}

// WaitingEvent tells for whom the candidate waits.
type WaitingEvent struct {
	Election, Key string
	Token         eldest.Token
	Predecessor   eldest.Candidate
}

// WonEvent tells of a win.
type WonEvent struct {
	Election, Key string
	Token         eldest.Token
	// Revision is the etcd revision of the proof.
	Revision int64
	// At is when the win was decided; the hook runs later.
	At time.Time
}

// EndedEvent tells of the end of a candidacy or tenure.
type EndedEvent struct {
	Election, Key string
	Token         eldest.Token
	// Led says whether it was a tenure.
	Led bool
	// Cause is why it ended.
	Cause error
	// At is when its context had ended; the hook runs later.
	At time.Time
}

// ForeignEvent tells of a foreign key.
type ForeignEvent struct {
	Election, Key string
}

// call hands an event to a hook, if there is one.
func call[E any](c *Candidate, hook func(E), event E) {
	if hook != nil {
		c.hooks.Do(func() { hook(event) })
	}
}
