package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// The defaults of the command, and the limits of a demo.
const (
	DefaultMembers    = 3
	DefaultCandidates = 5
	DefaultTTL        = 5 * time.Second
	DefaultHeartbeat  = time.Second

	// With fewer no waiter has another waiter behind it.
	minCandidates = 3
	// Each is a process.
	maxCandidates = 100
	maxTTL        = 5 * time.Minute
)

// Config describes a demo. With one member no member can be partitioned.
type Config struct {
	scenario.Config
	// Candidates is the number of candidates at a time.
	Candidates int
	// Heartbeat is the timeout of the candidates that have heartbeats.
	Heartbeat time.Duration
	// Duration is how long the steps are repeated; no step begins after it. 0 means each step once.
	Duration time.Duration
}

// check refuses an invalid Config, and rounds the TTL as etcd does.
func (c *Config) check() error {
	switch {
	case c.Members != 1 && c.Members != 3 && c.Members != 5:
		return fmt.Errorf("%w: --members %d: want 1, 3 or 5", scenario.ErrInvalid, c.Members)
	case c.Candidates < minCandidates || c.Candidates > maxCandidates:
		return fmt.Errorf("%w: --candidates %d: want %d to %d", scenario.ErrInvalid, c.Candidates, minCandidates, maxCandidates)
	case c.Duration < 0:
		return fmt.Errorf("%w: --duration %v: want more than 0s", scenario.ErrInvalid, c.Duration)
	}
	ttl := c.TTL
	if err := c.Check(maxTTL); err != nil {
		return err
	}
	if c.Heartbeat < lease.MinHeartbeat || c.Heartbeat >= ttl {
		return fmt.Errorf("%w: --heartbeat %v: want %v or more, and less than --ttl, %v", scenario.ErrInvalid, c.Heartbeat, lease.MinHeartbeat, ttl)
	}
	return nil
}

// The election, and the key that its leaders write. That key is outside the election's range, in
// which every key is a candidate's.
const (
	electionName = "demo"
	workKey      = "demo-work"
)

// What candidates report in addition to the reports of every demo.
const (
	AtRisk    scenario.Kind = "at-risk"
	Recovered scenario.Kind = "recovered"
	Evicted   scenario.Kind = "evicted"
)

// What the demo observes.
const (
	// Observed: the observer reports State, and Key and Token of the leader.
	Observed scenario.Kind = "observed"
	// Guarded: a write under the guard of Key and Token was Accepted or not.
	Guarded scenario.Kind = "guarded"
)

// plan is the plan of a demo.
type plan struct {
	*scenario.Demo
	cfg Config

	named     int             // how many candidates there were
	handovers int             // how many were reported
	beats     map[string]bool // the names of the candidates with heartbeats

	// For the texts: the candidates' names by key, and the keys that have won.
	names map[string]string
	led   map[string]bool
}

// Run runs a demo: see scenario.Run. It returns scenario.ErrInvalid before anything is started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	return scenario.Run(ctx, cfg.Config, newPlan(cfg), 9)
}

func newPlan(cfg Config) *plan {
	return &plan{cfg: cfg, beats: make(map[string]bool), names: make(map[string]string), led: make(map[string]bool)}
}

// Perform carries out all steps, until they are done, a step does not complete, or ctx ends.
func (p *plan) Perform(ctx context.Context, d *scenario.Demo) error {
	p.Demo = d
	observer, err := observe.New(observe.Config{Election: electionName, KV: p.All, Watcher: p.All})
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(observer) })
	defer watching.Wait()
	defer observer.Close()

	how := "each step once"
	if p.cfg.Duration > 0 {
		how = fmt.Sprintf("steps for %v", p.cfg.Duration)
	}
	p.Introduce("eldest demo: an etcd cluster of %s, %s, leases of %v; %s",
		story.Count(p.cfg.Members, "member"), story.Count(p.cfg.Candidates, "candidate"), p.TTL, how)

	begin := time.Now()
	over := func(round int) bool {
		if p.cfg.Duration == 0 {
			return round > 0
		}
		return time.Since(begin) >= p.cfg.Duration
	}
	err = p.step(ctx, scenario.Step{Title: "The candidates register", Why: []string{
		"Each is a process that holds a lease in etcd and a key bound to that lease. The oldest key leads, the others",
		"are queued behind it.",
	}, Do: p.register})
	for round := 0; err == nil && !over(round); round++ {
		for _, s := range p.round() {
			if err == nil && !over(round) {
				err = p.step(ctx, s)
			}
		}
		if round == 0 && p.cfg.Members == 1 {
			p.Say("", fmt.Sprintf("   Skipped: %q requires 3 members; see --members", partitioned))
		}
	}
	if err != nil {
		return err
	}
	return p.step(ctx, scenario.Step{Title: "All candidates leave", Why: []string{"Nothing may be left in etcd: no key, no lease."}, Do: p.leave})
}

const partitioned = "The leader's member is partitioned"

// round returns the steps of one round. Six candidates leave from the front of the queue in it;
// memberFor and beating depend on that.
func (p *plan) round() []scenario.Step {
	steps := []scenario.Step{
		{Title: "The leader resigns", Why: []string{
			"It stops leading, then deletes its own key. The deletion notifies the next candidate, so no lease has to expire.",
		}, Do: p.depose(scenario.Resign, p.terminate)},
		{Title: "A waiter leaves", Why: []string{
			"The candidate behind it is notified. It has not won: an older candidate exists, for which it waits now.",
		}, Do: p.withdraw},
		{Title: "The leader is killed", Why: []string{
			"It cannot delete its key. But the key is bound to its lease: etcd deletes it when the lease has expired.",
		}, Do: p.kill},
		{Title: "A leader with heartbeats is killed", Why: []string{
			"As before, but this leader and the next candidate have heartbeats: a leader writes a key four times in --heartbeat.",
			"If no heartbeat arrives for that time, the next candidate deletes the leader's key. Before that, a leader stops leading",
			"if etcd confirms no heartbeat.",
		}, Do: p.kill},
		{Title: "An operator deletes the leader's key", Why: []string{
			"A leader watches its own key, so it is notified within milliseconds. So is the next candidate; the order of the two",
			"varies. The guard handles this: from the deletion on, writes with the old token are refused.",
		}, Do: p.depose(scenario.Delete, p.remove)},
	}
	if p.cfg.Members > 1 {
		steps = append(steps, scenario.Step{Title: partitioned, Why: []string{
			"The leader cannot renew its lease. It counts from when it SENT its last renewal, etcd from when that one arrived, and",
			"it keeps a margin: it stops leading before etcd lets another candidate win. In between no candidate leads, by design.",
		}, Do: p.partition})
	}
	return steps
}

// step carries out a step, after a pause for readers. At its end it waits until the observer agrees
// with the candidates' reports, and replaces the candidates that left by new ones.
func (p *plan) step(ctx context.Context, s scenario.Step) error {
	if p.named > 0 && !p.JSON {
		if err := scenario.Sleep(ctx, p.TTL/2); err != nil {
			return err
		}
	}
	do := s.Do
	s.Do = func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		return p.settle(ctx)
	}
	return p.Step(ctx, s)
}

func (p *plan) settle(ctx context.Context) error {
	f := scenario.Fact{Kind: scenario.Settled}
	if leader := scenario.Leader(p.Facts()); leader != nil {
		f.Participant, f.Key, f.Token = leader.Name, leader.Key, leader.Token
	}
	err := p.Await(ctx, "the observer agrees", func(facts []scenario.Fact) bool {
		seen := scenario.Last(facts, func(f scenario.Fact) bool { return f.Kind == Observed })
		return seen != nil && seen.State != eldest.Unknown.String() && seen.Key == f.Key && seen.Token == f.Token
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	// The checks report an observer that does not agree.
	p.Tell(f)
	if f.Token > 0 {
		if err := p.fill(ctx); err != nil {
			return err
		}
	}
	// The lines of new candidates may still be in transit.
	if err := scenario.Sleep(ctx, scenario.SettleTime); err != nil {
		return err
	}
	return p.queue(ctx)
}

// watch records what the observer sees until it is closed.
func (p *plan) watch(observer *observe.Observer) {
	for sub := observer.Subscribe(); ; {
		state, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		f := scenario.Fact{Kind: Observed, State: state.Kind.String(), Key: state.Leader.Key, Token: state.Leader.Token}
		f.Participant = string(state.Leader.Value) // a candidate's value is its name
		if state.Reason != nil {
			f.Cause = state.Reason.Error()
		}
		p.Tell(f)
	}
}

// leave makes all candidates leave, the last in the queue first: nothing may be left.
func (p *plan) leave(ctx context.Context) error {
	var all []scenario.Fact
	for _, c := range scenario.Candidates(p.Facts()) {
		all = append([]scenario.Fact{{Participant: c.Name, Key: c.Key, Token: c.Token}}, all...)
	}
	return p.End(ctx, electionName, all)
}
