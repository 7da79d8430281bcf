package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
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

// Config configures a run. There are as many members as nodes.
type Config struct {
	scenario.Config
	// Rounds is how often the steps are carried out.
	Rounds int
	// Seed determines the client's requests and the nodes that it calls, but not the machine's timing.
	Seed uint64
}

// check refuses an invalid Config, and rounds the TTL as etcd does.
func (c *Config) check() error {
	if err := c.Check(maxTTL); err != nil {
		return err
	}
	if c.Rounds < 1 || c.Rounds > maxRounds {
		return fmt.Errorf("%w: --rounds %d: want 1 to %d", scenario.ErrInvalid, c.Rounds, maxRounds)
	}
	c.Members = nodes
	return nil
}

// certain is how long a node whose member is partitioned may rely on its lease. A renewal may
// succeed until the member has detected that it has lost etcd's leader.
func (c Config) certain() time.Duration { return c.TTL + scenario.Election }

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

// plan is the plan of a run, with the client that calls the nodes, the responses that it received,
// and the changes in etcd.
//
// Its methods are not safe for concurrent use, except note.
type plan struct {
	*scenario.Demo
	cfg      Config
	client   *client
	attempts scenario.History[Attempt]
	changes  []Change
	rows     []Row             // of the faults that are over
	said     map[string]string // the last report of each node, for the texts
}

// Run runs the demo: see scenario.Run. It returns scenario.ErrInvalid before anything is started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	p := &plan{cfg: cfg, said: make(map[string]string)}
	// Some calls have a short timeout, some outlast a change of leader.
	p.client = newClient([]time.Duration{500 * time.Millisecond, cfg.TTL / 2, 2 * cfg.TTL}, p.note)
	return scenario.Run(ctx, cfg.Config, p, 7)
}

// note records the result of a call. Safe for concurrent use.
func (p *plan) note(a Attempt) {
	p.attempts.Add(a)
	p.Note(a, a.line())
}

// Perform carries out the plan, and reads the changes from etcd.
func (p *plan) Perform(ctx context.Context, d *scenario.Demo) error {
	p.Demo = d
	defer p.client.close()
	rounds := "each step once"
	if p.cfg.Rounds > 1 {
		rounds = fmt.Sprintf("%d rounds of steps", p.cfg.Rounds)
	}
	p.Introduce("eldest service: an etcd cluster of %d members, %d nodes of a key-value service, leases of %v; %s, seed %d",
		nodes, nodes, p.TTL, rounds, p.cfg.Seed)
	broken := p.perform(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.client.halt() // in case the plan was not completed
	var err error
	p.changes, err = Changes(ctx, p.Client())
	return errors.Join(broken, err)
}

func (p *plan) perform(ctx context.Context) error {
	err := p.Step(ctx, scenario.Step{Title: "Three nodes, each with an etcd member of its own", Why: []string{
		"Each node takes calls. One of them leads and answers; the others forward calls to it. A client without knowledge of",
		"the leader begins to write, append, delete and read, each time through a node drawn at random.",
	}, Do: p.begin})
	for _, s := range slices.Repeat(p.steps(), p.cfg.Rounds) {
		if err != nil {
			return err
		}
		do := s.Do
		s.Do = func(ctx context.Context) error {
			began := time.Now()
			p.client.begin()
			if err := do(ctx); err != nil {
				return err
			}
			return p.settle(ctx, began)
		}
		if !p.JSON { // a pause for readers, in which the client continues
			err = scenario.Sleep(ctx, min(p.TTL/3, time.Second))
		}
		if err == nil {
			err = p.Step(ctx, s)
		}
	}
	if err != nil {
		return err
	}
	return p.Step(ctx, scenario.Step{Title: "All nodes leave", Why: []string{"The client stops calling, then the nodes end, the leader last."}, Do: p.leave})
}

func (p *plan) steps() []scenario.Step {
	return []scenario.Step{
		{Title: "The leader receives SIGTERM", Why: []string{
			"It accepts no new calls, finishes those in flight, and deletes its key: the next node leads a round trip later.",
			"Its port is closed until its next process listens: calls of the client to it fail before they are sent.",
		}, Do: p.fault(scenario.Resign, p.end(syscall.SIGTERM))},
		{Title: "The leader is killed", Why: []string{
			"Its key exists until its lease has expired, and until then no node leads. Whether the calls in flight at it were",
			"carried out is unknown: the client receives an error that says so, and no node has retried the call.",
		}, Do: p.fault(scenario.Kill, p.end(syscall.SIGKILL))},
		{Title: "The leader is suspended, and deposed meanwhile", Why: []string{
			"The whole process stops, at an arbitrary point; an operator deletes its key; another node leads. When it is resumed,",
			"its lease is still valid, its clock shows no problem, and calls are waiting. But each write and each read is",
			"conditional: only if its key has its token. That no longer holds, and etcd refuses them.",
		}, Do: p.fault(scenario.Suspend, p.suspend)},
		{Title: "The leader's etcd member is partitioned", Why: []string{
			"The leader still receives every call, from the other nodes too, but cannot write. It stops leading by its own",
			"clock before etcd lets another node win.",
		}, Do: p.fault(scenario.Cut, p.cutLeader)},
		{Title: "A follower's etcd member is partitioned", Why: []string{
			"A node that no longer knows the leader lets calls wait until their deadline. The other nodes continue.",
		}, Do: p.fault(scenario.CutFollower, p.cutFollower)},
	}
}

// begin starts the nodes one by one, so that the first one leads, and the client when all nodes
// agree.
func (p *plan) begin(ctx context.Context) error {
	for i := range nodes {
		if err := p.start(ctx, i); err != nil {
			return err
		}
		name := nodeName(i)
		err := p.Await(ctx, name+" leads or follows", func(facts []scenario.Fact) bool {
			f := lastStatus(facts, name)
			return p.Participant(name).Gone() || f != nil && f.Role != unknown
		})
		if err != nil {
			return err
		}
	}
	if _, err := p.agreed(ctx); err != nil {
		return err
	}
	p.client.all.Go(func() { p.client.run(p.cfg.Seed) })
	return p.settle(ctx, time.Now())
}

// settle ends a step: all nodes agree, the client has made enough calls since the step began, and
// then each node has answered.
func (p *plan) settle(ctx context.Context, began time.Time) error {
	if _, err := p.agreed(ctx); err != nil {
		return err
	}
	if err := p.awaitAttempts(ctx, "the client calls", 4*enough, func(a Attempt) bool { return a.Begin.After(began) }); err != nil {
		return err
	}
	t, err := p.agreed(ctx) // they agree still, or again
	if err != nil {
		return err
	}
	f := scenario.Fact{At: time.Now(), Kind: scenario.Settled, Participant: t.Name, Key: t.key, Token: t.token}
	p.Tell(f)
	answered := make(map[string]bool)
	err = p.awaitAttempts(ctx, "every node answers", nodes, func(a Attempt) bool {
		fresh := a.Outcome == Done && !a.Begin.Before(f.At) && !answered[a.Node]
		answered[a.Node] = answered[a.Node] || fresh
		return fresh
	})
	if err != nil {
		return err
	}
	// The row has the calls that have ended until now; the latest calls of the step are not in it.
	if row, ok := newEvidence(p.Facts(), p.attempts.Facts(), nil).row(); ok {
		p.rows = append(p.rows, row)
		p.Say(scenario.Margin + row.words(p.Style))
	}
	return nil
}

// tenure is a leader, according to the nodes' reports.
type tenure struct {
	*scenario.Participant
	token eldest.Token
	key   string
}

// agreed blocks until all nodes agree on a leader, in their last reports, and returns it.
func (p *plan) agreed(ctx context.Context) (t *tenure, err error) {
	err = p.Await(ctx, "all nodes agree on a leader", func(facts []scenario.Fact) bool {
		t = nil
		var said []scenario.Fact
		for i := range nodes {
			n := p.Participant(nodeName(i))
			f := scenario.Last(facts, func(f scenario.Fact) bool {
				return f.Participant == n.Name && (f.Kind == scenario.Status || f.Kind == scenario.Acted && f.Action == scenario.Start)
			})
			if n.Gone() || f.Role == "" || f.Role == unknown {
				return false
			}
			if said = append(said, *f); f.Role == scenario.Leading {
				t = &tenure{n, f.Token, f.Key}
			}
		}
		return t != nil && !slices.ContainsFunc(said, func(f scenario.Fact) bool { return f.Token != t.token })
	})
	return t, err
}

func lastStatus(facts []scenario.Fact, node string) *scenario.Fact {
	return scenario.Last(facts, func(f scenario.Fact) bool { return f.Kind == scenario.Status && f.Participant == node })
}

func (p *plan) awaitAttempts(ctx context.Context, what string, number int, match func(Attempt) bool) error {
	seen, found := 0, 0
	return p.attempts.Await(ctx, p.Expiry(), what, func(all []Attempt) bool {
		for ; seen < len(all); seen++ {
			if match(all[seen]) {
				found++
			}
		}
		return found >= number
	})
}

// Summary is the last object that --json prints.
type Summary struct {
	scenario.Result
	Seed   uint64 `json:"seed"`
	Faults []Row  `json:"faults"`
}

// Check audits the run.
func (p *plan) Check(facts []scenario.Fact) []story.Verdict {
	return Audit(facts, p.attempts.Facts(), p.changes, p.cfg)
}

// Summary returns the results, as an object and as text.
func (p *plan) Summary(_ []scenario.Fact, r scenario.Result) scenario.Summary {
	var lines []string
	for _, r := range p.rows {
		lines = append(lines, r.words(p.Style))
	}
	return scenario.Summary{
		Object: Summary{r, p.cfg.Seed, p.rows}, Title: "Faults", Rows: lines,
		Basis: "Audited: the responses to the client against all changes in etcd",
		Note:  fmt.Sprintf(", seed %d", p.cfg.Seed),
	}
}
