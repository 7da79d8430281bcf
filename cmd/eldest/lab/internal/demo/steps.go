package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

func (p *plan) register(ctx context.Context) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	_, err := p.awaitLeader(ctx)
	return err
}

// depose makes a step of an action that takes leadership away: it reports the action, carries it
// out, and waits for a successor. At the end it tries writes with both tokens.
func (p *plan) depose(action scenario.Action, do func(context.Context, *scenario.Candidacy) error) func(context.Context) error {
	return func(ctx context.Context) error {
		leader, err := p.awaitLeader(ctx)
		if err != nil {
			return err
		}
		p.Act(action, p.Participant(leader.Name), leader.Key, leader.Token)
		if err := do(ctx, leader); err != nil {
			return err
		}
		return p.succeeded(ctx, leader)
	}
}

func (p *plan) terminate(_ context.Context, c *scenario.Candidacy) error {
	return p.Participant(c.Name).Signal(syscall.SIGTERM)
}

// kill: the leader crashes. If it and the next candidate have heartbeats, these stop; otherwise its
// lease must expire.
func (p *plan) kill(ctx context.Context) error {
	if _, err := p.awaitLeader(ctx); err != nil {
		return err
	}
	action := scenario.Kill
	if queue := scenario.Candidates(p.Facts()); len(queue) > 1 && p.beats[queue[0].Name] && p.beats[queue[1].Name] {
		action = scenario.Silence
	}
	return p.depose(action, func(ctx context.Context, c *scenario.Candidacy) error {
		if err := p.Participant(c.Name).Signal(syscall.SIGKILL); err != nil || action == scenario.Silence {
			return err
		}
		entries, err := p.entries(ctx, p.Client())
		if err == nil && len(entries) > 0 && entries[0].Key == c.Key {
			p.Aside("its key still exists: etcd deletes it when its lease expires, in %v; no candidate leads until then", entries[0].TTL)
		}
		return err
	})(ctx)
}

func (p *plan) remove(ctx context.Context, c *scenario.Candidacy) error {
	return p.Delete(ctx, c.Key, int64(c.Token))
}

// withdraw: the first waiter is ordered to leave. The candidate behind it must find another
// candidate to wait for.
func (p *plan) withdraw(ctx context.Context) error {
	queue := scenario.Candidates(p.Facts())
	if len(queue) < minCandidates {
		return errors.New("there is no second waiter")
	}
	waiter, behind := queue[1], queue[2]
	p.Act(scenario.Withdraw, p.Participant(waiter.Name), waiter.Key, waiter.Token)
	if err := p.terminate(ctx, waiter); err != nil {
		return err
	}
	return p.Await(ctx, behind.Name+" waits for another candidate", func(facts []scenario.Fact) bool {
		moved := scenario.Last(facts, func(f scenario.Fact) bool {
			return f.Key == behind.Key && (f.Kind == scenario.Waiting || f.Kind == scenario.Won)
		})
		return p.Participant(waiter.Name).Gone() && moved.Predecessor != waiter.Key
	})
}

// partition: the leader's member is partitioned from the others, and joined again after the others
// have a new leader.
func (p *plan) partition(ctx context.Context) error {
	var name string
	err := p.depose(scenario.Cut, func(ctx context.Context, c *scenario.Candidacy) error {
		name = c.Name
		return p.Cut(ctx, p.Participant(name).Member)
	})(ctx)
	if err != nil {
		return err
	}
	member := p.Participant(name).Member
	p.Tell(scenario.Fact{Kind: scenario.Acted, Action: scenario.Mend, Member: member.Name})
	if err := p.Mend(member.Index); err != nil {
		return err
	}
	p.Aside("%s re-registers: a new process, a new lease, a new key, and therefore the end of the queue", name)
	return p.start(ctx, name, member.Index)
}

// awaitLeader blocks until the candidates report a leader: on a busy machine a lease may expire
// unintentionally.
func (p *plan) awaitLeader(ctx context.Context) (leader *scenario.Candidacy, err error) {
	err = p.Await(ctx, "a candidate leads", func(facts []scenario.Fact) bool {
		leader = scenario.Leader(facts)
		return leader != nil
	})
	return leader, err
}

// succeeded blocks until the old leader has a successor and its process has ended, tries writes
// with both their tokens, and reports the hand-over.
func (p *plan) succeeded(ctx context.Context, old *scenario.Candidacy) error {
	var next *scenario.Candidacy
	err := p.Await(ctx, old.Name+" has a successor", func(facts []scenario.Fact) bool {
		f := scenario.Last(facts, func(f scenario.Fact) bool { return f.Kind == scenario.Won && f.Token > old.Token })
		if f != nil {
			next = &scenario.Candidacy{Name: f.Participant, Key: f.Key, Token: f.Token}
		}
		return f != nil
	})
	if err != nil {
		return err
	}
	if err := p.AwaitEnd(ctx, p.Participant(old.Name)); err != nil {
		return err
	}
	if err := errors.Join(p.write(ctx, old), p.write(ctx, next)); err != nil {
		return err
	}
	if changes := scenario.Handovers(scenario.InOrder(p.Facts())); len(changes) > p.handovers {
		p.handovers = len(changes)
		h := wordsOf(changes[len(changes)-1])
		p.Say(fmt.Sprintf("%shand-over: %s, %s after %s; %s", scenario.Margin, h.who, p.Style.Paint(story.Bold, h.took), h.why, h.tail))
	}
	return nil
}

// fill starts candidates until there are as many as configured. They start one by one, so that the
// names are in the order of the queue.
func (p *plan) fill(ctx context.Context) error {
	for len(scenario.Candidates(p.Facts())) < p.cfg.Candidates {
		p.named++
		name := fmt.Sprintf("c%d", p.named)
		p.beats[name] = beating(p.named)
		if err := p.start(ctx, name, p.memberFor(p.named)); err != nil {
			return err
		}
	}
	return nil
}

// perRound is how many candidates leave in a round, from the front of the queue.
const perRound = 6

// beating reports whether the n-th candidate has heartbeats: in each round the fourth, which is
// then killed, and the fifth, which is next.
func beating(n int) bool { return n%perRound == 4 || n%perRound == 5 }

// memberFor chooses the member of the n-th candidate. The sixth of a round leads when a member is
// partitioned. It alone uses the last member, so that the partition affects no other candidate; if
// it does, that is reported and judged like everything else.
func (p *plan) memberFor(n int) int {
	members := p.cfg.Members
	switch {
	case members == 1:
		return 0
	case n%perRound == 0:
		return members - 1
	default:
		return n % (members - 1)
	}
}

// start starts a candidate's process that reaches the given member only, and blocks until it
// waits or leads.
func (p *plan) start(ctx context.Context, name string, member int) error {
	words := []string{"campaign", electionName}
	if p.beats[name] {
		words = []string{"campaign", "--heartbeat", p.cfg.Heartbeat.String(), electionName}
	}
	_, err := p.Start(ctx, name, member, func(f scenario.Fact) bool { return f.Kind == scenario.Waiting || f.Kind == scenario.Won }, words...)
	return err
}

// queue reports the queue that etcd has.
func (p *plan) queue(ctx context.Context) error {
	if p.JSON {
		return nil
	}
	entries, err := p.entries(ctx, nil)
	if err != nil || len(entries) == 0 {
		return err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = string(e.Value)
	}
	names[0] = p.Style.Paint(story.Green, fmt.Sprintf("%s(leader, token %d)", names[0], entries[0].Token))
	p.Say(scenario.Margin + "queue: " + strings.Join(names, " <- "))
	return nil
}

// entries reads the queue from etcd, with the leases' remaining times if leases is not nil.
func (p *plan) entries(ctx context.Context, leases clientv3.Lease) ([]observe.Entry, error) {
	return observe.Queue(ctx, p.Client(), leases, electionName)
}

// write writes under the guard of a tenure, as a leader does, and records whether etcd accepted the
// write.
func (p *plan) write(ctx context.Context, c *scenario.Candidacy) error {
	guard := txn.Guard{Election: electionName, Key: c.Key, Token: c.Token}
	f := scenario.Fact{At: time.Now(), Kind: Guarded, Participant: c.Name, Key: c.Key, Token: c.Token}
	_, err := guard.KV(p.Client()).Put(ctx, workKey, c.Name)
	var refused *txn.GuardError
	switch {
	case err == nil:
		f.Accepted = true
	case errors.As(err, &refused) && errors.Is(err, eldest.ErrDeposed):
		f.Found = refused.Found
	default:
		return fmt.Errorf("a guarded write: %w", err)
	}
	p.Tell(f)
	return nil
}
