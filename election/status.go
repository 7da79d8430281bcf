package election

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Status is the status of a candidate at one moment. The zero value means that it is not queued.
type Status struct {
	// Token is the token of the candidacy or tenure; 0 if there is none.
	Token eldest.Token
	// Leading means that the candidate leads.
	Leading bool
	// Draining means that it led and gave leadership up, and that its key still exists.
	Draining bool
	// Suspended means that it led, and that it continues to lead, with the same token, when it
	// campaigns again, unless it was deposed meanwhile (eldest.ErrSuspended).
	Suspended bool
}

// Status reads the clock and returns the current status. It sends nothing. The first call after the
// process or the machine was stopped is already correct, as far as Leadership.Holds is.
func (c *Candidate) Status() Status {
	c.lock()
	defer c.unlock()
	if !c.registered() {
		return Status{}
	}
	s := Status{Token: c.life.token, Leading: c.phase() == core.Leading, Suspended: c.suspended()}
	s.Draining = c.phase() == core.Draining && !s.Suspended
	return s
}

// Remaining reads the clock and returns how long no other candidate can lead, counted from the
// call: what remains of the lease and the heartbeats of a candidate that leads or was drained;
// otherwise 0. After a drained tenure has run out of heartbeats it stays 0.
func (c *Candidate) Remaining() time.Duration {
	lease := c.cfg.Session.Status().Remaining
	c.lock()
	defer c.unlock()
	if !c.won() || c.suspended() {
		return 0
	}
	return max(0, min(lease, c.machine.Left()))
}

// Changed returns a channel that is closed when Status may have changed: get the channel first, the
// status after that. The clock alone does not close it: if the session's deadline has passed, the
// next call that reads the clock ends the session and closes the channel.
func (c *Candidate) Changed() <-chan struct{} {
	c.lock()
	defer c.unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Closed reports whether Close was called.
func (c *Candidate) Closed() bool {
	c.lock()
	defer c.unlock()
	return c.closed
}

// turned closes the channel of Changed. The caller holds the mutex.
func (c *Candidate) turned() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Dropped returns how many calls of Config.Hooks were dropped so far because a thousand calls
// waited for a hook that blocks.
func (c *Candidate) Dropped() int { return c.hooks.Dropped() }
