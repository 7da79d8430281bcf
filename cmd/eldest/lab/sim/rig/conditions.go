package rig

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// change changes the conditions of the network and wakes every reader to notice it.
func (h *Host) change(way Way, f func(*weather)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if way&Out != 0 {
		f(&h.out)
	}
	if way&In != 0 {
		f(&h.in)
	}
	close(h.changed)
	h.changed = make(chan struct{})
	for c, s := range h.conns {
		c.in.poke()
		s.in.poke()
	}
}

// Cut holds everything in the given direction from now on, like a black hole. Everything that was
// written arrives when the cut heals.
func (h *Host) Cut(way Way) { h.change(way, func(w *weather) { w.held = true }) }

// Heal ends cuts, delays and losses in both directions.
func (h *Host) Heal() {
	h.change(Both, func(w *weather) { w.held, w.delay, w.loss = false, h.trip, 0 })
}

// Hurry makes everything in flight arrive within the normal delay: without it, what was sent during
// a delay arrives late, and so does everything sent behind it on the same connection, although the
// delay was healed long ago.
func (h *Host) Hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.hurried)
	h.hurried = make(chan struct{})
	for c := range h.conns {
		c.in.hurry(h.trip)
	}
	for s := range h.ends {
		s.in.hurry(h.trip)
	}
}

// Settle sets the normal delay of each direction, from now on; it is 0 before.
func (h *Host) Settle(trip time.Duration) {
	h.change(Both, func(w *weather) { w.delay, h.trip = trip, trip })
}

// Delay adds d to the delay of everything that is written in the given direction from now on.
func (h *Host) Delay(way Way, d time.Duration) {
	h.change(way, func(w *weather) { w.delay = h.trip + d })
}

// Reset breaks every connection of the host at both ends and returns how many
// there were. The client dials again.
func (h *Host) Reset() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tearLocked()
	for c, s := range h.conns {
		c.in.tear()
		c.out.tear()
		s.in.tear()
		s.out.tear()
	}
	return len(h.conns)
}

// afterglow is how long after the last bytes the server is notified of a drop.
const afterglow = 50 * time.Millisecond

// Drop breaks every connection of the host at its own end only: requests in flight still arrive at
// the server, late, and are executed there, while the client has dialled again and continued. It
// returns how many connections there were.
func (h *Host) Drop() int {
	h.mu.Lock()
	h.tearLocked()
	open := slices.Collect(maps.Keys(h.conns))
	h.mu.Unlock()
	for _, c := range open {
		c.in.tear()
		c.out.endAfter(afterglow)
	}
	return len(open)
}

// Unplug disconnects the host from the network for ever without notifying the server, which keeps
// its connections: a power failure. The processes on the host are not notified either; the caller
// must stop them and then call [Host.Kill].
func (h *Host) Unplug() { h.change(Both, func(w *weather) { w.dead = true }) }

// Kill unplugs the host and closes its client, so that nothing of it is left.
// Calling it again does nothing.
func (h *Host) Kill() {
	h.Unplug()
	h.mu.Lock()
	if h.killed {
		h.mu.Unlock()
		return
	}
	h.killed = true
	h.mu.Unlock()
	h.Reset()
	_ = h.Client.Close()
}

// Effects prove that the conditions of a host took effect.
type Effects struct {
	Held, Late int // bytes that were held by a cut, or delayed
	Starved    int // times that a goroutine waited for a processor
	Resent     int // times that a packet was retransmitted
}

// Effects returns the effects on the host so far.
func (h *Host) Effects() Effects {
	return Effects{int(h.held.Load()), int(h.late.Load()), int(h.starved.Load()), int(h.resent.Load())}
}

// Freeze stops the process on the host as SIGSTOP does, as far as the network is concerned: nothing
// leaves and nothing is received until [Host.Thaw], whatever heals meanwhile, and then everything
// at once. Freeze cannot stop the process's timers: the caller must give the process a clock that
// stops meanwhile and jumps at the end, which has the same effect as stopped timers.
func (h *Host) Freeze() {
	h.change(Both, func(*weather) { h.frozen = true })
}

// Thaw ends a freeze.
func (h *Host) Thaw() {
	h.change(Both, func(*weather) { h.frozen = false })
}

// patience is how long TCP waits before it retransmits a lost packet for the first time; it doubles
// with each loss of the same packet. Here the fourth retransmission succeeds.
const patience = 200 * time.Millisecond

// Lossy makes packets of the given direction get lost with probability p from now on, drawn from
// rng. TCP retransmits them, later and later, and what was sent after them waits: a loss is a delay
// that comes and goes. [Host.Heal] ends it.
func (h *Host) Lossy(way Way, p float64, rng *rand.Rand) {
	h.mu.Lock()
	h.luck = rng
	h.mu.Unlock()
	h.change(way, func(w *weather) { w.loss = p })
}

// retransmit returns by how much losses delay a packet.
func (h *Host) retransmit(p float64) (late time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for again := patience; h.luck.Float64() < p && again <= 8*patience; again *= 2 {
		late += again
		h.resent.Add(1)
	}
	return late
}
