package service

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

func (p *plan) steps() []scenario.Step {
	return []scenario.Step{
		{Title: "The leader receives SIGTERM", Why: []string{
			"It accepts no new calls, finishes those in flight, and deletes its key: the next node leads a round trip later.",
			"Its port is closed until its next process listens: calls of the client to it fail before they are sent.",
		}, Do: p.fault(scenario.Resign)},
		{Title: "The leader is killed", Why: []string{
			"Its key exists until its lease has expired, and until then no node leads. Whether the calls in flight at it were",
			"carried out is unknown: the client receives an error that says so, and no node has retried the call.",
		}, Do: p.fault(scenario.Kill)},
		{Title: "The leader is suspended, and deposed meanwhile", Why: []string{
			"The whole process stops, at an arbitrary point; an operator deletes its key; another node leads. When it is resumed,",
			"its lease is still valid, its clock shows no problem, and calls are waiting. But each write and each read is",
			"conditional: only if its key has its token. That no longer holds, and etcd refuses them.",
		}, Do: p.fault(scenario.Suspend)},
		{Title: "The leader's etcd member is partitioned", Why: []string{
			"The leader still receives every call, from the other nodes too, but cannot write. It stops leading by its own",
			"clock before etcd lets another node win.",
		}, Do: p.fault(scenario.Cut)},
		{Title: "A follower's etcd member is partitioned", Why: []string{
			"A node that no longer knows the leader lets calls wait until their deadline. The other nodes continue.",
		}, Do: p.fault(scenario.CutFollower)},
	}
}

// fault makes a step of an action: it is carried out, and undone when the nodes and the client have
// noticed it.
func (p *plan) fault(action scenario.Action) func(context.Context) error {
	return func(ctx context.Context) error {
		leader, err := p.agreed(ctx)
		if err != nil {
			return err
		}
		node := p.Participant(leader.Participant)
		if action == scenario.CutFollower {
			// A follower; if possible one whose member does not lead etcd, so that the leader is not affected.
			for i, name := range names {
				if name != leader.Participant && (node.Name == leader.Participant || !p.Leads(ctx, i, scenario.Election)) {
					node = p.Participant(name)
				}
			}
		}
		before := len(p.client.Facts())
		act := scenario.Fact{
			At: time.Now(), Kind: scenario.Acted, Action: action,
			Participant: node.Name, Member: node.Member.Name, Key: leader.Key, Token: leader.Token,
		}
		p.Tell(act)
		if err := p.inflict(ctx, node, act); err != nil {
			return err
		}
		if err := p.noticed(ctx, act, before); err != nil {
			return err
		}
		if err := p.undo(ctx, node, act); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
		// The row has the calls that have ended until now; the summary has all.
		rows := newEvidence(p.Facts(), p.client.Facts()[before:], nil).rows()
		p.Say(scenario.Margin + rows[len(rows)-1].words(p.Style))
		return nil
	}
}

// noticed blocks until the nodes have noticed an action: a deposed leader has a successor, and a node
// that is cut off neither leads nor follows. Then it blocks until the client has: calls failed, and the
// successor has acknowledged writes. The first attempts of the client, before, are not of interest.
func (p *plan) noticed(ctx context.Context, act scenario.Fact, before int) error {
	isCut := act.Action == scenario.Cut || act.Action == scenario.CutFollower
	err := p.Await(ctx, "the nodes have noticed it", func(facts []scenario.Fact) bool {
		succeeded := scenario.Last(facts, func(f scenario.Fact) bool {
			return f.Kind == scenario.Status && f.Role == scenario.Leading && f.Token > act.Token
		}) != nil
		sure := isCut && p.status(facts, act.Participant).Role != unknown
		return !sure && (succeeded || !act.Action.Deposes())
	})
	if err != nil {
		return err
	}
	return p.client.Await(ctx, p.Expiry(), "the client has noticed it", func(all []Attempt) bool {
		f := fault{Fact: act, attempts: begun(all[before:], act.At, time.Now())}
		return f.unnoticed() == "" && (count(f.attempts, f.served) >= 4*enough || !act.Action.Deposes())
	})
}

// asleep is how long a leader at least stays suspended: longer than the shortest timeout of a call.
const asleep = 700 * time.Millisecond

// inflict carries out an action, which was reported, on a node.
func (p *plan) inflict(ctx context.Context, n *scenario.Participant, act scenario.Fact) error {
	switch act.Action {
	case scenario.Resign:
		return n.Signal(syscall.SIGTERM)
	case scenario.Kill:
		return n.Signal(syscall.SIGKILL)
	case scenario.Suspend:
		if err := n.Suspend(); err != nil {
			return fmt.Errorf("suspend %s: %w", n.Name, err)
		}
		p.Aside("and deletes its key %s, in etcd", act.Key)
		return p.Delete(ctx, act.Key, int64(act.Token))
	default:
		if err := p.Cut(ctx, n.Member); err != nil {
			return err
		}
		return p.probe(ctx, n, false)
	}
}

// undo makes the node work again: with its next process, or with a lease that is still valid, or
// with its member.
func (p *plan) undo(ctx context.Context, n *scenario.Participant, act scenario.Fact) error {
	switch act.Action {
	case scenario.Resign, scenario.Kill:
		if err := p.AwaitEnd(ctx, n); err != nil {
			return err
		}
		return p.start(ctx, n.Member.Index)
	case scenario.Suspend:
		// Meanwhile calls to it wait, as does the notification of its end; its lease must outlast that.
		if err := scenario.Sleep(ctx, time.Until(act.At.Add(max(p.TTL/4, asleep)))); err != nil {
			return err
		}
		p.Act(scenario.Resume, n, "", 0)
		return n.Resume()
	default:
		p.Act(scenario.Mend, n, "", 0)
		if err := p.Mend(n.Member.Index); err != nil {
			return err
		}
		return p.probe(ctx, n, true)
	}
}

// probe sends the node's member a request that requires a majority, until it is answered, or not
// answered, as expected, and reports the result. This detects a partition without effect.
func (p *plan) probe(ctx context.Context, n *scenario.Participant, want bool) error {
	if err := inject.Answers(ctx, p.Each[n.Member.Index], want, scenario.Election); err != nil {
		return fmt.Errorf("%s is not partitioned as it should be: %w", n.Member.Name, err)
	}
	p.Tell(scenario.Fact{Kind: Probed, Participant: n.Name, Member: n.Member.Name, OK: want})
	return nil
}
