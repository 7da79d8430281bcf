package election

import "github.com/eldest-io/eldest"

// Status is what a candidate is at one moment. The zero value is one that does not
// stand.
type Status struct {
	// Token is that of the candidacy or tenure; 0 if there is none.
	Token eldest.Token
	// Leading says that it is a tenure.
	Leading bool
}

// Status reads the clock and returns what the candidate is at this moment. It sends
// nothing, and after the process or the machine was stopped the first call already
// tells the truth, as far as Leadership.Holds does.
func (c *Candidate) Status() Status {
	holds := c.cfg.Session.Holds(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.standing
	if !holds || s == nil || s.ended() {
		return Status{}
	}
	return Status{Token: s.token, Leading: s.won()}
}

// Dropped returns how many calls of Config.Hooks were dropped so far, because a
// thousand waited behind a hook that blocks.
func (c *Candidate) Dropped() int { return c.hooks.Dropped() }
