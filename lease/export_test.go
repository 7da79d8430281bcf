package lease

import "time"

// NewPulseOn is NewPulse on another clock.
func NewPulseOn(clock Clock, within time.Duration) *Pulse {
	p := &Pulse{within: within, clock: clock}
	p.Beat()
	return p
}
