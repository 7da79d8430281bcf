package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// compacted compacts all history up to this moment, and reports whether it did.
func (r *run) compacted() bool {
	if !r.world.Server.Up() {
		return false
	}
	_, err := r.admin.Client.Compact(r.world.T.Context(), r.world.Server.Tap.Rev())
	return err == nil
}

// overrun partitions a participant, changes and compacts the store, and resets the connection as it
// heals: the participant's watch begins again at a compacted revision. The server counts such
// watches.
func (r *run) overrun(p *participant, s step) {
	r.bother(p, s.lasts)
	p.host.Cut(rig.Both)
	r.later(s.lasts/2, func() {
		for i := range 3 {
			if !r.world.Server.Up() {
				return
			}
			ctx, cancel := context.WithTimeout(r.world.T.Context(), time.Second)
			_, _ = r.admin.Client.Put(ctx, "elsewhere", fmt.Sprint(i))
			cancel()
		}
		r.count("compaction behind a cut", r.compacted())
	})
	r.later(s.lasts, func() {
		p.host.Reset()
		p.host.Heal()
	})
}

// full raises the server's space alarm for a while.
func (r *run) full(s step) {
	if r.world.Server.Full(true) != nil {
		return
	}
	r.bother(nil, s.lasts)
	r.endsAfter(s.lasts, string(full), func() int { return r.world.Server.Refusals()[rig.NoSpace] }, r.space)
}

// space clears it; if the server is down, when it is up again.
func (r *run) space() {
	owed := r.world.Server.Full(false) != nil
	r.bother(nil, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed = owed
}

func drawStall(rng *rand.Rand, ttl time.Duration, s *step) {
	s.lasts = between(rng, ttl/10, 2*ttl)
	s.reset = rng.IntN(3) == 0
}

// stall partitions all participants at once: for them, the server is stopped or partitioned. For
// the server, they are, and leases continue to expire.
func (r *run) stall(s step) {
	r.bother(nil, s.lasts)
	all := r.allParticipants()
	for _, p := range all {
		p.host.Cut(rig.Both)
	}
	held := func() (sum int) {
		for _, p := range all {
			sum += p.host.Effects().Held
		}
		return sum
	}
	r.endsAfter(s.lasts, string(stall), held, func() {
		for _, p := range all {
			p.host.Heal()
			if s.reset {
				p.host.Reset()
			}
		}
	})
}

// restart stops the server and starts it with its data after a while. With one
// member this is also the loss of the quorum.
func (r *run) restart(s step) {
	election := 20 * r.tempo.tick
	begun := r.world.Now()
	r.bother(nil, s.lasts+2*time.Second+election)
	r.world.Server.Stop()
	time.Sleep(s.lasts)
	require.NoError(r.world.T, r.world.Server.Start())
	r.mu.Lock()
	owed := r.owed
	r.mu.Unlock()
	if owed {
		r.space()
	}
	r.admin.Client.ActiveConnection().ResetConnectBackoff()
	r.count(string(s.verb), true)
	// The administrator's client needs a connection again.
	ctx, cancel := context.WithTimeout(r.world.T.Context(), time.Minute)
	defer cancel()
	_, err := r.admin.Client.Get(ctx, "nothing")
	require.NoError(r.world.T, err)
	took := r.world.Now() - begun
	require.Less(r.world.T, took, s.lasts+10*time.Second+election, "INVALID: the restart took %v", took)
}
