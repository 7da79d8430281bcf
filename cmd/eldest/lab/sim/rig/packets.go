package rig

import (
	"math/rand/v2"
	"time"
)

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
