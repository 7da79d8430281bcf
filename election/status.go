package election

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Status is what a candidate is at one moment. The zero value is one that does not
// stand.
type Status struct {
	// Token is that of the candidacy or tenure; 0 if there is none.
	Token eldest.Token
	// Leading says that it is a tenure.
	Leading bool
	// Draining says that it was a tenure, which was given up, and the key still stands.
	Draining bool
	// Suspended says that it was a tenure, and that the candidate leads on, with the same token,
	// when it campaigns again, unless it was deposed meanwhile (eldest.ErrSuspended).
	Suspended bool
}

// Status reads the clock and returns what the candidate is at this moment. It sends
// nothing, and after the process or the machine was stopped the first call already
// tells the truth, as far as Leadership.Holds does.
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

// Remaining reads the clock and returns for how long nobody else can lead, counted from the call: what
// the lease and the heartbeats have left for one that leads, or was drained; else 0. After a tenure that
// was drained has run out of heartbeats it stays 0.
func (c *Candidate) Remaining() time.Duration {
	lease := c.cfg.Session.Status().Remaining
	c.lock()
	defer c.unlock()
	if !c.won() || c.suspended() {
		return 0
	}
	return max(0, min(lease, c.machine.Left()))
}

// Changed returns a channel that is closed when Status may have changed: ask for the
// channel first, for the status after that. It says nothing of the clock: the end of a
// session that only a look at the clock finds out closes it when that look is taken.
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

// turned says that something has changed. The caller holds the mutex.
func (c *Candidate) turned() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Dropped returns how many calls of Config.Hooks were dropped so far, because a
// thousand waited behind a hook that blocks.
func (c *Candidate) Dropped() int { return c.hooks.Dropped() }
