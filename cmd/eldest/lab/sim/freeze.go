package sim

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// stop stops the process, as SIGSTOP does, at this instant, and returns what is closed
// when it goes on: its network is frozen, its clock stands still, and nobody asks it
// anything. first is false if it was stopped already, or has not begun, or is dead.
//
// Its goroutines are not stopped, which nothing in a bubble can do. But whatever they
// do by the clock they do at the instant of the stop, and whatever they send leaves
// when the process goes on.
func (a *actor) stop() (goesOn <-chan struct{}, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped != nil || a.waking || !a.started || a.dead() {
		return a.stopped, false
	}
	a.stopped = make(chan struct{})
	a.clock.stop()
	a.host.Freeze()
	a.tell(oracle.Event{Kind: oracle.Stopped})
	return a.stopped, true
}

// goOn lets the process go on: its clock jumps, and everything that arrived meanwhile
// is there at once. Asked, the first thing it does is to look whether it leads; else it
// first takes in what has arrived, and looks a moment later. It reports whether the
// process was stopped.
func (a *actor) goOn(asked bool) bool {
	a.mu.Lock()
	stopped := a.stopped
	a.stopped = nil
	if stopped == nil {
		a.mu.Unlock()
		return false
	}
	a.waking = !asked // what it has sent while it was stopped may meet another trap
	a.tell(oracle.Event{Kind: oracle.Continued})
	a.clock.jump()
	if asked {
		a.askAfterStop()
	}
	a.host.Thaw()
	close(stopped)
	s := a.session
	a.mu.Unlock()
	if !asked {
		time.Sleep(time.Microsecond)
		a.mu.Lock()
		a.waking = false
		if a.stopped == nil {
			a.askAfterStop()
		}
		a.mu.Unlock()
	}
	if s != nil {
		s.Usable() // timers that would have gone off during the stop go off now
	}
	return true
}

// askAfterStop is the first use after a stop. The caller holds mu.
func (a *actor) askAfterStop() {
	if a.tenure == nil {
		return
	}
	kind := oracle.NotSure
	if a.askLocked("") {
		kind = oracle.Sure
	}
	now := a.stage.world.Now()
	a.tell(oracle.Event{Kind: kind, Token: a.tenure.Token(), At: now, Until: now})
}

// running reports whether the process is not stopped.
func (a *actor) running() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped == nil
}
