package rig

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// change alters the weather and wakes every reader to see it.
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

// Cut holds everything in the given direction from now on: a black hole. What
// was written arrives when the cut heals.
func (h *Host) Cut(way Way) { h.change(way, func(w *weather) { w.held = true }) }

// Heal ends cuts, delays and losses in both directions.
func (h *Host) Heal() {
	h.change(Both, func(w *weather) { w.held, w.delay, w.loss = false, h.trip, 0 })
}

// Hurry lets all that is still under way arrive as soon as good weather lets it: without
// it, what was sent into a delay arrives late, and whatever is sent behind it on the same
// connection, although the delay was healed long ago.
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

// Settle sets how long each direction takes in good weather, from now on; 0
// before.
func (h *Host) Settle(trip time.Duration) {
	h.change(Both, func(w *weather) { w.delay, h.trip = trip, trip })
}

// Delay adds d to whatever is written in the given direction from now on.
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

// afterglow is how long after the last bytes the server learns of a drop.
const afterglow = 50 * time.Millisecond

// Drop breaks every connection of the host at its own end only: what is under
// way still arrives at the server, late, and is done there, while the client has
// dialled again and gone on. It returns how many there were.
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

// Unplug takes the host off the network for ever without a word to the server,
// which goes on believing in its connections: power failure. The processes on
// the host do not notice either; whoever plays them must stop them and then
// call [Host.Kill].
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

// Effects are the proof that the weather was more than a forecast.
type Effects struct {
	Held, Late int // bytes that met a cut, or a delay
	Starved    int // times that a goroutine waited for a processor
	Resent     int // times that a packet was sent again
}

// Effects returns what the host has met so far.
func (h *Host) Effects() Effects {
	return Effects{int(h.held.Load()), int(h.late.Load()), int(h.starved.Load()), int(h.resent.Load())}
}

// Freeze stops the process on the host as SIGSTOP does, as far as the network can
// tell: nothing leaves and nothing is taken in until [Host.Thaw], whatever heals
// meanwhile, and then everything at once. What the network cannot do is to stop
// timers and to let clocks run on: whoever plays the process gives it a clock that
// stands still meanwhile and jumps at the end, which is what stopped timers make of
// it.
func (h *Host) Freeze() {
	h.change(Both, func(*weather) { h.frozen = true })
}

// Thaw lets a frozen host go on.
func (h *Host) Thaw() {
	h.change(Both, func(*weather) { h.frozen = false })
}

// patience is how long TCP waits before it sends a lost packet again the first time;
// it doubles with each loss of the same packet. Here the fourth time gets through.
const patience = 200 * time.Millisecond

// Lossy makes packets of the given direction get lost with probability p from now on,
// drawn from rng. TCP sends them again, later and later, and what was sent after them
// waits: a loss is a delay that comes and goes. [Host.Heal] ends it.
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
