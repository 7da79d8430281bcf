package lease

import "time"

// NewLivenessOn is NewLiveness on another clock.
func NewLivenessOn(clock Clock, within time.Duration) *Liveness {
	p := &Liveness{within: within, clock: clock}
	p.Alive()
	return p
}
