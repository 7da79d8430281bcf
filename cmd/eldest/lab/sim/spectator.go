package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/observe"
)

// spectator observes a scenario from a host of its own, over a network of its
// own that fails now and then, and files what it was told.
type spectator struct {
	stage *stage
	host  *rig.Host
	rng   *rand.Rand

	stop    context.CancelFunc
	running sync.WaitGroup
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

// watch files every state until it is told to stop.
func (v *spectator) watch(ctx context.Context, o *observe.Observer) {
	defer o.Close()
	reader := o.Subscribe()
	for {
		state, err := reader.Next(ctx)
		if err != nil {
			return
		}
		e := oracle.Event{
			Kind: oracle.Observed, Who: "spectator", Text: state.Kind.String(), Commit: state.Revision,
			Token: int64(state.Leader.Token), Key: state.Leader.Key, Lease: state.Leader.Lease,
		}
		if state.Reason != nil {
			e.Reason = state.Reason.Error()
		}
		v.stage.log.Add(e)
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

// leave closes the observer, when all has settled: by then it knows who is first in the
// queue.
func (v *spectator) leave(queue []oracle.Change) {
	e := oracle.Event{Kind: oracle.Settled}
	if len(queue) > 0 {
		e.Token = queue[0].Create
	}
	v.stage.log.Add(e)
	v.stop()
	v.running.Wait()
}
