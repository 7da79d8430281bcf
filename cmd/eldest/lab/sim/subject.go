package sim

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// spoiler makes tenures defective, so that the harness can be seen to find that.
type spoiler func(contender.Tenure, *clientv3.Client) contender.Tenure

// contender is what the participant's process campaigns with. Ours has the process's clock
// and temper, tells of proofs, and takes part in transfers.
func (a *actor) contender() contender.Contender {
	ours, ok := a.stage.impl.(contender.Ours)
	if !ok {
		return a.stage.impl
	}
	altered := ours.Lease
	ours.Lease = func(cfg *lease.Config) {
		a.temper.apply(cfg)
		cfg.Clock, cfg.Heartbeat = a.clock, a.beats
		if altered != nil {
			altered(cfg)
		}
	}
	ours.Election = func(cfg *election.Config) {
		cfg.Recheck, cfg.GiveWay = a.stage.tempo.recheck, a.giveWay()
		cfg.Hooks.Won = func(e election.WonEvent) {
			a.tell(oracle.Event{Kind: oracle.Proven, Token: int64(e.Token), Proof: e.Revision})
		}
	}
	if a.beats.Timeout > 0 {
		tellsOf := ours.Election
		ours.Election = func(cfg *election.Config) {
			tellsOf(cfg)
			cfg.Hooks.Evicted = func(e election.EvictedEvent) {
				a.tell(oracle.Event{Kind: oracle.Evicted, Token: int64(e.Evicted.Token), Key: e.Evicted.Key})
			}
		}
	}
	if a.rng != nil && a.rng.IntN(2) == 0 {
		ours.Registered = func() {} // registering and waiting are two calls
	}
	if a.asked {
		ours.Made = func(c *election.Candidate, s *lease.Session) {
			a.serving.Go(func() { // it ends with the session
				_ = transfer.Serve(context.Background(), transfer.Config{
					Candidate: c, Session: s, KV: a.host.Client, Watcher: a.host.Client, Recheck: a.stage.tempo.recheck,
				})
			})
		}
	}
	return ours
}

// giveWay tells of each time that a candidate is to give way to one that is wanted more.
func (a *actor) giveWay() func(eldest.Candidate, []eldest.Candidate) bool {
	if a.rank == nil {
		return nil
	}
	gives := election.ByPriority(a.rank)
	return func(own eldest.Candidate, others []eldest.Candidate) bool {
		yes := gives(own, others)
		if yes {
			a.tell(oracle.Event{Kind: oracle.Yielded})
		}
		return yes
	}
}

// Temper is what a participant's session and clock are like. The zero value
// leaves everything at its default.
type Temper struct {
	// Rate is how fast the participant's clock runs; 0 means 1.
	Rate float64
	// Margin is subtracted from the TTL; it must cover Rate. 0: the default.
	Margin time.Duration
	// Patience is the time-out of a renewal as a share of the TTL; 0: the
	// default.
	Patience float64
}

func (t Temper) apply(cfg *lease.Config) {
	cfg.Margin = t.Margin
	if t.Patience != 0 {
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			r := lease.DefaultRenewal(granted)
			r.Timeout = time.Duration(t.Patience * float64(granted))
			return r
		}
	}
}

// drawTemper draws one. The default margin hides two faults: an error of up to
// a tenth of the TTL, and, with its short time-out, all of a slow reply. So half
// of the participants have next to none, with a perfect clock; the others have a
// clock as bad as the default margin still covers.
func drawTemper(rng *rand.Rand) Temper {
	if rng.IntN(2) == 0 {
		return Temper{Margin: time.Millisecond, Patience: 0.1 + 0.6*rng.Float64()}
	}
	return Temper{Rate: 0.92 + 0.16*rng.Float64()}
}
