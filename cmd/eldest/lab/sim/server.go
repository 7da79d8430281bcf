package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// compact removes all history up to this moment.
func (s *show) compact(step) { s.count(string(compact), s.compacted()) }

func (s *show) compacted() bool {
	if !s.up() {
		return false
	}
	_, err := s.admin.Client.Compact(s.world.T.Context(), s.world.Server.Tap.Rev())
	return err == nil
}

// overrun cuts a participant off, lets the store move on and compacts it, and breaks
// the connection as it heals: the participant's watch begins again at a revision that
// is gone. The server tells whether one did.
func (s *show) overrun(a *actor, st step) {
	s.bother(a, st.lasts)
	a.host.Cut(rig.Both)
	s.later(st.lasts/2, func() {
		for i := range 3 {
			if !s.up() {
				return
			}
			ctx, cancel := context.WithTimeout(s.world.T.Context(), time.Second)
			_, _ = s.admin.Client.Put(ctx, "elsewhere", fmt.Sprint(i))
			cancel()
		}
		s.count("compaction behind a cut", s.compacted())
	})
	s.later(st.lasts, func() {
		a.host.Reset()
		a.host.Heal()
	})
}

// full takes the store's space away for a while.
func (s *show) full(st step) {
	if s.world.Server.Full(true) != nil {
		return
	}
	s.bother(nil, st.lasts)
	s.endsAfter(st.lasts, string(full), func() int { return s.world.Server.Refusals()[rig.NoSpace] }, s.space)
}

// space gives it back; to a server that is down, when it is up again.
func (s *show) space() {
	owed := s.world.Server.Full(false) != nil
	s.bother(nil, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = owed
}

// stall cuts everybody off at once: to them, the server is stopped or cut off. To the
// server it is they who are, and leases run on.
func (s *show) stall(st step) {
	s.bother(nil, st.lasts)
	all := s.everybody()
	effect := func() int {
		sum := 0
		for _, a := range all {
			sum += a.host.Effects().Held
		}
		return sum
	}
	for _, a := range all {
		a.host.Cut(rig.Both)
	}
	s.endsAfter(st.lasts, string(stall), effect, func() {
		for _, a := range all {
			a.host.Heal()
			if st.reset {
				a.host.Reset()
			}
		}
	})
}

// restart stops the server and starts it with its data after a while. With one
// member this is also the loss of the quorum.
func (s *show) restart(st step) {
	election := 20 * s.tempo.tick
	begun := s.world.Now()
	s.bother(nil, st.lasts+2*time.Second+election)
	defer func() {
		took := s.world.Now() - begun
		require.Less(s.world.T, took, st.lasts+10*time.Second+election, "INVALID: the restart took %v", took)
	}()
	s.world.Server.Stop()
	time.Sleep(st.lasts)
	require.NoError(s.world.T, s.world.Server.Start())
	s.mu.Lock()
	owed := s.owed
	s.mu.Unlock()
	if owed {
		s.space()
	}
	s.admin.Client.ActiveConnection().ResetConnectBackoff()
	s.count(string(st.verb), true)
	// The hand that takes keys away needs a connection again.
	ctx, cancel := context.WithTimeout(s.world.T.Context(), time.Minute)
	defer cancel()
	_, err := s.admin.Client.Get(ctx, "nothing")
	require.NoError(s.world.T, err)
}
