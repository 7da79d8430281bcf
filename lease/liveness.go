package lease

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
)

// Liveness is an application's liveness probe: the application calls Alive. A session renews for as
// long as the process runs, even if the work itself hangs: such a leader does nothing and keeps
// others from leading. A session with a Liveness renews only while the application calls Alive, so
// that a stuck leader loses its lease when the last renewal expires.
//
// One Liveness may serve any number of sessions, at the same time and one after another. All
// methods are safe for concurrent use. Nothing runs in the background.
type Liveness struct {
	within time.Duration
	clock  Clock
	last   atomic.Int64 // reading of clock at the last call of Alive
}

// NewLiveness returns a Liveness that counts as alive for the given time after each Alive, and from
// now on. A session stops renewing when that time is over; counted from the last Alive, a successor
// leads after at most that time, one Renewal.Every and the TTL. The time must be positive, or
// sessions with the Liveness are refused. It is read on Boot's clock.
func NewLiveness(within time.Duration) *Liveness {
	p := &Liveness{within: within, clock: Boot()}
	p.Alive()
	return p
}

// Alive records that the application is alive. Call it where progress is made, from the loop that
// does the work: a goroutine that only calls Alive proves nothing. It costs one reading of the
// clock.
func (p *Liveness) Alive() { p.last.Store(int64(p.clock.Now())) }

// Err returns nil while the last Alive is recent enough, otherwise an error that wraps
// eldest.ErrUnresponsive and has its age. Err of a nil Liveness returns nil.
func (p *Liveness) Err() error {
	if p == nil {
		return nil
	}
	if silent := p.clock.Now() - time.Duration(p.last.Load()); silent > p.within {
		return fmt.Errorf("%w for %v, the limit is %v", eldest.ErrUnresponsive, silent.Round(time.Millisecond), p.within)
	}
	return nil
}

// check refuses a Liveness that can never be alive, or was not made by NewLiveness.
func (p *Liveness) check() error {
	if p != nil && (p.within <= 0 || p.clock == nil) {
		return fmt.Errorf("%w: a Liveness that needs Alive every %v is never alive", eldest.ErrInvalid, p.within)
	}
	return nil
}
