package service

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

func nodeName(index int) string { return fmt.Sprintf("n%d", index+1) }

// start starts a node's process, which reaches its own member only, and blocks until it listens and
// the client has its address.
func (p *plan) start(ctx context.Context, index int) error {
	name := nodeName(index)
	p.Tell(scenario.Fact{Kind: scenario.Acted, Action: scenario.Start, Participant: name, Member: p.Member(index).Name})
	f, err := p.Start(ctx, name, index, func(f scenario.Fact) bool { return f.Kind == Listening }, "service", "node", Election)
	if err != nil {
		return err
	}
	return p.client.reach(index, name, f.Address)
}

// fault makes a step of an action against the leader, which is reported and carried out.
func (p *plan) fault(action scenario.Action, do func(context.Context, *tenure) error) func(context.Context) error {
	return func(ctx context.Context) error {
		leader, err := p.agreed(ctx)
		if err != nil {
			return err
		}
		if action != scenario.CutFollower {
			p.Act(action, leader.Participant, leader.key, leader.token)
		}
		return do(ctx, leader)
	}
}

// end ends the leader's process, waits for a successor, and starts the node again.
func (p *plan) end(sig syscall.Signal) func(context.Context, *tenure) error {
	return func(ctx context.Context, old *tenure) error {
		if err := old.Signal(sig); err != nil {
			return err
		}
		if err := p.succeeded(ctx, old); err != nil {
			return err
		}
		if err := p.AwaitEnd(ctx, old.Participant); err != nil {
			return err
		}
		return p.start(ctx, old.Member.Index)
	}
}

// asleep is how long a leader at least stays suspended while its successor leads: longer than the
// shortest timeout of a call.
const asleep = 700 * time.Millisecond

// suspend: the leader's process is stopped, and an operator deletes its key. When another node has
// led for a while the process is resumed, with a lease that is still valid.
func (p *plan) suspend(ctx context.Context, old *tenure) error {
	if err := old.Suspend(); err != nil {
		return fmt.Errorf("suspend %s: %w", old.Name, err)
	}
	p.Aside("and deletes its key %s, in etcd", old.key)
	if err := p.Delete(ctx, old.key, int64(old.token)); err != nil {
		return fmt.Errorf("delete the key of %s: %w", old.Name, err)
	}
	if err := p.succeeded(ctx, old); err != nil {
		return err
	}
	// Meanwhile calls to it wait, as does the notification of its end; its lease must outlast that.
	if err := scenario.Sleep(ctx, max(p.TTL/4, asleep)); err != nil {
		return err
	}
	p.Tell(scenario.Fact{Kind: scenario.Acted, Action: scenario.Resume, Participant: old.Name})
	if err := old.Resume(); err != nil {
		return fmt.Errorf("resume %s: %w", old.Name, err)
	}
	return p.Await(ctx, old.Name+" follows its successor", func(facts []scenario.Fact) bool {
		f := lastStatus(facts, old.Name)
		return f.Role == following && f.Token > old.token
	})
}

// cutLeader: the member through which the leader reaches etcd is partitioned, and joined again
// after another node leads.
func (p *plan) cutLeader(ctx context.Context, old *tenure) error {
	return p.cut(ctx, old.Participant, func() error {
		if err := p.succeeded(ctx, old); err != nil {
			return err
		}
		_, err := p.awaitNeither(ctx, old.Name, old.token)
		return err
	})
}

// cutFollower: the same with a follower's member. The leader stays.
func (p *plan) cutFollower(ctx context.Context, leader *tenure) error {
	// A follower whose member does not lead etcd, so that the leader is not affected.
	var follower *scenario.Participant
	for i := range nodes {
		if n := p.Participant(nodeName(i)); n != leader.Participant && !p.Leads(ctx, i, scenario.Election) {
			follower = n
		}
	}
	p.Act(scenario.CutFollower, follower, leader.key, leader.token)
	return p.cut(ctx, follower, func() error {
		since, err := p.awaitNeither(ctx, follower.Name, leader.token)
		if err != nil {
			return err
		}
		return p.awaitAttempts(ctx, "a call through "+follower.Name+" fails", 1, func(a Attempt) bool {
			return a.Outcome != Done && a.Node == follower.Name && a.Begin.After(since)
		})
	})
}

// cut partitions a node's member, proves the partition, waits, and heals it.
func (p *plan) cut(ctx context.Context, n *scenario.Participant, wait func() error) error {
	if err := p.Cut(ctx, n.Member); err != nil {
		return err
	}
	err := p.probe(ctx, n, false)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return err
	}
	p.Act(scenario.Mend, n, "", 0)
	if err := p.Mend(n.Member.Index); err != nil {
		return err
	}
	return p.probe(ctx, n, true)
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

// succeeded blocks until a node leads with a newer token and serves.
func (p *plan) succeeded(ctx context.Context, old *tenure) error {
	err := p.Await(ctx, old.Name+" has a successor", func(facts []scenario.Fact) bool {
		return scenario.Last(facts, func(f scenario.Fact) bool {
			return f.Kind == scenario.Status && f.Role == scenario.Leading && f.Token > old.token
		}) != nil
	})
	if err != nil {
		return err
	}
	return p.awaitAttempts(ctx, "the successor of "+old.Name+" serves", enough, func(a Attempt) bool {
		return a.Outcome == Done && a.Token > old.token
	})
}

// awaitNeither blocks until a node reports that it neither leads nor follows, after it led or
// followed in the tenure with the token, and returns since when.
func (p *plan) awaitNeither(ctx context.Context, node string, token eldest.Token) (since time.Time, err error) {
	err = p.Await(ctx, node+" neither leads nor follows", func(facts []scenario.Fact) bool {
		was := scenario.Last(facts, func(f scenario.Fact) bool {
			return f.Kind == scenario.Status && f.Participant == node && f.Token == token
		})
		f := lastStatus(facts, node)
		if was == nil || f.Role != unknown {
			return false
		}
		since = f.At
		return true
	})
	return since, err
}

func (p *plan) leave(ctx context.Context) error {
	leader, err := p.agreed(ctx)
	if err != nil {
		return err
	}
	p.client.halt() // first, so that the nodes that it called can answer
	var all []scenario.Fact
	for i := range nodes {
		if name := nodeName(i); name != leader.Name {
			all = append(all, scenario.Fact{Participant: name, Token: leader.token})
		}
	}
	return p.End(ctx, Election, append(all, scenario.Fact{Participant: leader.Name, Token: leader.token}))
}
