package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// The defaults of the command, and the limits of a run.
const (
	DefaultTTL    = 3 * time.Second
	DefaultRounds = 1

	maxTTL    = time.Minute
	maxRounds = 1000
)

// nodes is the number of nodes, and of members: each node has its own member.
const nodes = 3

// names are the names of the nodes, in the order of their members.
var names = [nodes]string{"n1", "n2", "n3"}

// Config configures a run. There are as many members as nodes.
type Config struct {
	scenario.Config
	// Rounds is how often the steps are carried out.
	Rounds int
	// Seed determines the client's requests and the nodes that it calls, but not the machine's timing.
	Seed uint64
}

// Election is the name of the election in which the nodes are candidates.
const Election = "shop"

// Listening means that the node takes calls at Address.
const Listening scenario.Kind = "listening"

// Probed means that a read through Member that requires a majority was OK or not.
const Probed scenario.Kind = "probe"

// The roles that nodes report, in addition to scenario.Leading.
const (
	following = "following"
	unknown   = "unknown"
)

// plan is the plan of a run, with the client that calls the nodes, and the changes in etcd.
type plan struct {
	*scenario.Demo
	cfg     Config
	client  client
	changes []Change
	said    map[string]string // the last role of each node, for the texts
}

// Run runs the demo: see scenario.Run. It returns scenario.ErrInvalid before anything is started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Check(maxTTL); err != nil {
		return err
	}
	if cfg.Rounds < 1 || cfg.Rounds > maxRounds {
		return fmt.Errorf("%w: --rounds %d: want 1 to %d", scenario.ErrInvalid, cfg.Rounds, maxRounds)
	}
	cfg.Members = nodes
	p := &plan{cfg: cfg, said: make(map[string]string)}
	// Some calls have a short timeout, some outlast a change of leader.
	p.client.patience = []time.Duration{500 * time.Millisecond, cfg.TTL / 2, 2 * cfg.TTL}
	return scenario.Run(ctx, cfg.Config, p, 7)
}

// Perform carries out the plan, and reads the changes from etcd, also if a step was not completed.
func (p *plan) Perform(ctx context.Context, d *scenario.Demo) error {
	p.Demo = d
	defer p.client.close()
	rounds := "each step once"
	if p.cfg.Rounds > 1 {
		rounds = fmt.Sprintf("%d rounds of steps", p.cfg.Rounds)
	}
	p.Introduce("eldest service: an etcd cluster of %d members, %d nodes of a key-value service, leases of %v; %s, seed %d",
		nodes, nodes, p.TTL, rounds, p.cfg.Seed)
	broken := p.serve(ctx)
	if broken == nil {
		broken = p.Step(ctx, scenario.Step{Title: "All nodes leave", Why: []string{"The client has stopped calling. The nodes end, the leader last."}, Do: p.leave})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var err error
	p.changes, err = Changes(ctx, p.Client())
	return errors.Join(broken, err)
}

// serve starts the nodes and carries out all faults, while the client calls. It returns when the
// last call has ended.
func (p *plan) serve(ctx context.Context) error {
	asking, halt := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer halt()
	err := p.Step(ctx, scenario.Step{Title: "Three nodes, each with an etcd member of its own", Why: []string{
		"Each node takes calls. One of them leads and answers; the others forward calls to it. A client without knowledge of",
		"the leader begins to write, append, delete and read, each time through a node drawn at random.",
	}, Do: func(step context.Context) error {
		if err := p.begin(step); err != nil {
			return err
		}
		calls.Go(func() { p.client.run(asking, ctx, p.cfg.Seed, func(a Attempt) { p.Note(a, a.line()) }) })
		return p.settle(step)
	}})
	if err != nil {
		return err
	}
	for _, s := range slices.Repeat(p.steps(), p.cfg.Rounds) {
		if !p.JSON { // a pause for readers, in which the client continues
			if err := scenario.Sleep(ctx, min(p.TTL/3, time.Second)); err != nil {
				return err
			}
		}
		p.client.step.Add(1)
		if err := p.Step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the nodes one by one, so that the first one leads.
func (p *plan) begin(ctx context.Context) error {
	for i, name := range names {
		if err := p.start(ctx, i); err != nil {
			return err
		}
		err := p.Await(ctx, name+" leads or follows", func(facts []scenario.Fact) bool { return p.status(facts, name).Token > 0 })
		if err != nil {
			return err
		}
	}
	return nil
}

// start starts a node's process, which reaches its own member only, and blocks until it listens and
// the client has its address.
func (p *plan) start(ctx context.Context, node int) error {
	p.Tell(scenario.Fact{Kind: scenario.Acted, Action: scenario.Start, Participant: names[node], Member: p.Member(node).Name})
	f, err := p.Start(ctx, names[node], node, func(f scenario.Fact) bool { return f.Kind == Listening }, "service", "node", Election)
	if err != nil {
		return err
	}
	return p.client.reach(node, names[node], f.Address)
}

// status returns the last report of a node's role by its present process; it is empty if there is
// none, or the process has ended. The token is that of the leader; 0 if the role is unknown.
func (p *plan) status(facts []scenario.Fact, node string) scenario.Fact {
	f := scenario.Last(facts, func(f scenario.Fact) bool {
		return f.Participant == node && (f.Kind == scenario.Status || f.Kind == scenario.Acted && f.Action == scenario.Start)
	})
	if f == nil || p.Participant(node).Gone() {
		return scenario.Fact{}
	}
	return *f
}

// agreed blocks until all nodes agree on a leader, in their last reports, and returns the leader's.
func (p *plan) agreed(ctx context.Context) (leader scenario.Fact, err error) {
	err = p.Await(ctx, "all nodes agree on a leader", func(facts []scenario.Fact) bool {
		leader = scenario.Fact{}
		tokens := make(map[eldest.Token]bool)
		for _, name := range names {
			s := p.status(facts, name)
			if s.Role == scenario.Leading {
				leader = s
			}
			tokens[s.Token] = true
		}
		return leader.Token > 0 && len(tokens) == 1
	})
	return leader, err
}

// settle ends a step: all nodes agree, and then each has answered a call.
func (p *plan) settle(ctx context.Context) error {
	leader, err := p.agreed(ctx)
	if err != nil {
		return err
	}
	f := scenario.Fact{At: time.Now(), Kind: scenario.Settled, Participant: leader.Participant, Key: leader.Key, Token: leader.Token}
	p.Tell(f)
	before := len(p.client.Facts())
	return p.client.Await(ctx, p.Expiry(), "every node answers", func(all []Attempt) bool {
		answered := make(map[string]bool)
		for _, a := range all[before:] {
			if !a.hampered() && !a.Begin.Before(f.At) {
				answered[a.Node] = true
			}
		}
		return len(answered) == nodes
	})
}

// leave ends all nodes, the leader last.
func (p *plan) leave(ctx context.Context) error {
	leader, err := p.agreed(ctx)
	if err != nil {
		return err
	}
	var all []scenario.Fact
	for _, name := range names {
		if name != leader.Participant {
			all = append(all, scenario.Fact{Participant: name, Token: leader.Token})
		}
	}
	return p.End(ctx, Election, append(all, scenario.Fact{Participant: leader.Participant, Token: leader.Token}))
}

// Check audits the run.
func (p *plan) Check(facts []scenario.Fact) []story.Verdict {
	return Audit(facts, p.client.Facts(), p.changes, p.cfg)
}

// Summary is the last object that --json prints.
type Summary struct {
	scenario.Result
	Seed   uint64 `json:"seed"`
	Faults []Row  `json:"faults"`
}

// Summary returns the results, as an object and as text.
func (p *plan) Summary(facts []scenario.Fact, r scenario.Result) scenario.Summary {
	rows := newEvidence(facts, p.client.Facts(), nil).rows()
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.words(p.Style))
	}
	return scenario.Summary{
		Object: Summary{r, p.cfg.Seed, rows}, Title: "Faults", Rows: lines,
		Basis: "Audited: the responses to the client against all changes in etcd",
		Note:  fmt.Sprintf(", seed %d", p.cfg.Seed),
	}
}
