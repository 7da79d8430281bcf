package sim

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// network does the steps that happen to one host's network.
func (s *show) network(a *actor, st step) {
	h := a.host
	switch st.verb {
	case cut:
		s.bother(a, st.lasts)
		h.Cut(st.way)
		s.endsAfter(st.lasts, "cut "+st.way.String(), func() int { return h.Effects().Held }, func() {
			h.Heal()
			if st.reset {
				h.Reset()
			}
		})
	case delay:
		s.bother(a, st.lasts+2*st.lag)
		h.Delay(st.way, st.lag)
		s.endsAfter(st.lasts, "delay "+sizeOf(st.lag, s.ttl), func() int { return h.Effects().Late }, h.Heal)
	case packets:
		// The last packet may be sent again, a few times, when all is well again.
		s.bother(a, st.lasts+10*time.Second)
		h.Lossy(st.way, st.share, s.rng(st))
		s.endsAfter(st.lasts, string(packets), func() int { return h.Effects().Resent }, h.Heal)
	case fade:
		s.bother(a, st.course(s.ttl))
		h.Delay(st.way, st.lag)
		s.later(st.lasts, func() {
			h.Cut(rig.Both)
			s.endsAfter(st.course(s.ttl)-st.lasts, string(fade), a.sessionsLost, h.Heal)
		})
	case flicker:
		s.flicker(a, st)
	}
}

// flicker makes a candidate join and withdraw while its requests are under way.
func (s *show) flicker(a *actor, st step) {
	s.bother(a, st.lasts+2*st.lag)
	a.host.Delay(st.way, st.lag)
	for at := time.Duration(0); at < st.lasts; at += 2 * st.lag / 3 {
		s.later(at, func() { s.count(string(flicker), a.quitWaiting()) })
	}
	s.later(st.lasts, func() {
		a.quitWaiting()
		if st.reset {
			broken := a.host.Drop() // its last requests arrive when it has long gone on
			s.count("broken in a flicker", broken > 0)
		}
		a.host.Heal()
	})
}
