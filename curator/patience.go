package curator

import "time"

// patience is how long a call may yet wait for a leader, and for a connection to it. What
// the caller itself takes, to send its message, does not count.
type patience struct{ until time.Time }

// apart does what does not count.
func (p *patience) apart(do func() error) error {
	begun := time.Now()
	err := do()
	p.spare(time.Since(begun))
	return err
}

// spare gives back what did not count.
func (p *patience) spare(d time.Duration) { p.until = p.until.Add(d) }

// left is how long the call may yet wait; 0 or less if it may not.
func (p *patience) left() time.Duration { return time.Until(p.until) }
