package sim

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// spoiler makes tenures defective, to show that the harness finds it.
type spoiler func(contender.Tenure, *clientv3.Client) contender.Tenure

// contender returns the contender that the participant's process uses. Ours has the process's clock
// and temper, reports proofs, and takes part in transfers.
func (p *participant) contender() contender.Contender {
	ours, ok := p.run.impl.(contender.Ours)
	if !ok {
		return p.run.impl
	}
	altered := ours.Lease
	ours.Lease = func(cfg *lease.Config) {
		p.configure(&cfg.Options)
		if altered != nil {
			altered(cfg)
		}
	}
	ours.Election = func(cfg *election.Config) { p.elects(&cfg.Options) }
	if p.rng.IntN(2) == 0 {
		ours.Registered = func(election.Position) {} // registering and waiting are two calls
	}
	if p.transfers {
		ours.Made = func(c *election.Candidate, s *lease.Session) {
			p.serving.Go(func() { // it ends with the session
				_ = transfer.Serve(context.Background(), transfer.Config{
					Candidate: c, Session: s, KV: p.host.Client, Watcher: p.host.Client,
					ServeOptions: transfer.ServeOptions{WatchCheck: p.run.tempo.recheck},
				})
			})
		}
	}
	return ours
}

// configure gives a session the process's clock and temper.
func (p *participant) configure(cfg *lease.Options) {
	cfg.Margin, cfg.Clock, cfg.Heartbeat = p.temper.margin, p.clock, p.beats
	if p.temper.patience != 0 {
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			r := lease.DefaultRenewal(granted)
			r.Timeout = time.Duration(p.temper.patience * float64(granted))
			return r
		}
	}
}

// elects makes a candidate report proofs, evictions, and each time that it must yield to a higher priority.
func (p *participant) elects(cfg *election.Options) {
	cfg.WatchCheck = p.run.tempo.recheck
	cfg.Hooks.Won = func(e election.WonEvent) {
		p.report(oracle.Event{Kind: oracle.Proven, Token: int64(e.Token), Proof: e.Revision})
	}
	cfg.Hooks.Evicted = func(e election.EvictedEvent) {
		p.report(oracle.Event{Kind: oracle.Evicted, Token: int64(e.Evicted.Token), Key: e.Evicted.Key})
	}
	if !p.run.ranked {
		return
	}
	yields := election.ByPriority(func(value []byte) int { return int(value[len(value)-1]) % 3 })
	cfg.ShouldYield = func(own eldest.Candidate, others []eldest.Candidate) bool {
		yes := yields(own, others)
		if yes {
			p.report(oracle.Event{Kind: oracle.Yielded})
		}
		return yes
	}
}
