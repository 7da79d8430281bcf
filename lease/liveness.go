package lease

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
)

// Liveness is an application's sign of life. A session renews for as long as
// the process runs, even where the work itself hangs: a leader that does nothing and
// lets nobody else lead. A session with a Liveness renews only while the application beats,
// so that a stuck leader loses its lease when the last renewal runs out.
//
// One Liveness may serve any number of sessions, at the same time and one after another.
// All methods are safe for concurrent use. Nothing runs in the background.
type Liveness struct {
	within time.Duration
	clock  Clock
	last   atomic.Int64 // reading of clock at the last beat
}

// NewLiveness returns a pulse that has just beaten and counts as alive for the given time
// after each beat. A session that finds it silent renews no more; counted from the last
// beat, the lease's successor leads after at most that time, one Renewal.Every and the
// TTL. The time must be positive, or sessions with the pulse are refused. It is read on
// Boot's clock.
func NewLiveness(within time.Duration) *Liveness {
	p := &Liveness{within: within, clock: Boot()}
	p.Beat()
	return p
}

// Beat says that the application is alive. Call it where progress is made, from the loop
// that does the work: a goroutine that does nothing but beat proves nothing. It costs one
// reading of the clock.
func (p *Liveness) Beat() { p.last.Store(int64(p.clock.Now())) }

// Err returns nil while the last beat is recent enough, else an error that wraps
// eldest.ErrUnresponsive and says how old it is. Without a pulse nothing is asked.
func (p *Liveness) Err() error {
	if p == nil {
		return nil
	}
	if silent := p.clock.Now() - time.Duration(p.last.Load()); silent > p.within {
		return fmt.Errorf("%w for %v, and %v are allowed", eldest.ErrUnresponsive, silent.Round(time.Millisecond), p.within)
	}
	return nil
}

// check refuses a pulse that can never be alive, or was not made by NewLiveness.
func (p *Liveness) check() error {
	if p != nil && (p.within <= 0 || p.clock == nil) {
		return fmt.Errorf("%w: a pulse that must beat every %v is never alive", eldest.ErrInvalid, p.within)
	}
	return nil
}
