package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/oracle"
	"github.com/eldest-io/eldest/tests/sim/rig"
)

// spectator observes a scenario from a host of its own, over a network of its
// own that fails now and then, and keeps what it was told.
type spectator struct {
	stage *stage
	host  *rig.Host
	rng   *rand.Rand

	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	states []sighting
}

// sighting is one report of the observer.
type sighting struct {
	at    time.Duration
	state eldest.State
}

// newSpectator takes a seat; draw it from the same seed as the plan.
func newSpectator(s *stage, seed uint64) *spectator {
	v := &spectator{stage: s, host: s.world.Host("spectator"), rng: rand.New(rand.NewPCG(seed, 0x736565))}
	o, err := observe.New(observe.Config{Election: electionName, KV: v.host.Client, Watcher: v.host.Client})
	require.NoError(s.world.T, err)
	ctx, stop := context.WithCancel(s.world.T.Context())
	v.stop = stop
	v.running.Go(func() { v.watch(ctx, o) })
	v.running.Go(func() { v.suffer(ctx) })
	return v
}

// watch keeps every state until it is told to stop.
func (v *spectator) watch(ctx context.Context, o *observe.Observer) {
	defer o.Close()
	reader := o.Subscribe()
	for {
		state, err := reader.Next(ctx)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.states = append(v.states, sighting{v.stage.world.Now(), state})
		v.mu.Unlock()
	}
}

// suffer cuts, delays and resets the spectator's network at random, as long as
// there are faults elsewhere.
func (v *spectator) suffer(ctx context.Context) {
	for v.pause(ctx, 500*time.Millisecond, 6*time.Second) && !v.stage.calm.Load() {
		switch v.rng.IntN(3) {
		case 0:
			v.host.Cut([]rig.Way{rig.Both, rig.In, rig.Out}[v.rng.IntN(3)])
		case 1:
			v.host.Delay(rig.In, between(v.rng, 0, 3*time.Second))
		case 2:
			v.host.Reset()
		}
		v.pause(ctx, 0, 12*time.Second)
		v.host.Heal()
	}
}

func (v *spectator) pause(ctx context.Context, least, most time.Duration) bool {
	timer := time.NewTimer(between(v.rng, least, most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave closes the observer and returns what it reported.
func (v *spectator) leave() []sighting {
	v.stop()
	v.running.Wait()
	return v.states
}

// judge sets what was seen against the truth (G6): tokens and revisions never go
// back, who is said to lead at a revision did, nobody means an empty queue, and
// what is unknown has a reason.
func judge(seen []sighting, h *oracle.History) []oracle.Violation {
	var out []oracle.Violation
	var token eldest.Token
	var revision int64
	bad := func(s sighting, format string, args ...any) {
		out = append(out, oracle.Violation{Invariant: "G6", At: s.at, Text: fmt.Sprintf(format, args...)})
	}
	for _, s := range seen {
		if s.state.Kind == eldest.Unknown {
			if s.state.Reason == nil {
				bad(s, "unknown without a reason")
			}
			continue
		}
		if s.state.Revision < revision {
			bad(s, "revision %d was reported after %d", s.state.Revision, revision)
		}
		revision = s.state.Revision
		truth := h.LeaderAt(revision)
		switch {
		case s.state.Kind == eldest.Nobody && truth != 0:
			bad(s, "nobody at revision %d, where token %d led", revision, truth)
		case s.state.Kind == eldest.Led && int64(s.state.Leader.Token) != truth:
			bad(s, "token %d at revision %d, where token %d led", s.state.Leader.Token, revision, truth)
		}
		if s.state.Kind == eldest.Led {
			if s.state.Leader.Token < token {
				bad(s, "token %d was reported after %d", s.state.Leader.Token, token)
			}
			token = s.state.Leader.Token
			if owner := strings.TrimPrefix(s.state.Leader.Key, prefix); owner != strconv.FormatInt(s.state.Leader.Lease, 16) {
				bad(s, "lease %x of key %s", s.state.Leader.Lease, s.state.Leader.Key)
			}
		}
	}
	return out
}
