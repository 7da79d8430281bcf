package demo

import (
	"context"
	"errors"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// errNobody ends the play when a leader or waiter that an act needs is missing.
var errNobody = errors.New("nobody stands where somebody should")

// resign: the leader is asked to leave.
func resign(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := s.signal(Resign, leader, syscall.SIGTERM); err != nil {
		return err
	}
	return s.succeeded(ctx, leader)
}

// withdraw: the first waiter is asked to leave. Its successor must find somebody
// else to wait for.
func withdraw(ctx context.Context, s *stage) error {
	queue := s.queue()
	if len(queue) < minCandidates {
		return errNobody
	}
	waiter, behind := queue[1], queue[2]
	if err := s.signal(Withdraw, waiter, syscall.SIGTERM); err != nil {
		return err
	}
	return s.Await(ctx, behind.actor+" waits for somebody else", func(facts []Fact) bool {
		moved := scenario.Last(facts, func(f Fact) bool { return f.Key == behind.key && (f.Kind == Waiting || f.Kind == Won) })
		return s.Participant(waiter.actor).Gone() && moved.Predecessor != waiter.key
	})
}

// kill: the leader's process ends without a word.
func kill(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	act := Kill
	if queue := s.queue(); len(queue) > 1 && s.beats[leader.actor] && s.beats[queue[1].actor] {
		act = Silence
	}
	if err := s.signal(act, leader, syscall.SIGKILL); err != nil {
		return err
	}
	if act == Silence {
		return s.succeeded(ctx, leader)
	}
	entries, err := s.entries(ctx, s.Client())
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Key == leader.key {
		s.Aside("its key is still there: etcd waits for its lease, which has %v left; nobody leads until then", entries[0].TTL)
	}
	return s.succeeded(ctx, leader)
}

// remove: an operator deletes the leader's key.
func remove(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	s.Tell(Fact{Kind: Acted, Act: Delete, Actor: leader.actor, Key: leader.key, Token: leader.token})
	if err := s.Delete(ctx, leader.key, leader.token); err != nil {
		return err
	}
	return s.succeeded(ctx, leader)
}

// partition: the leader's member is cut off from the others, and joined again
// after the others have a new leader.
func partition(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	member := s.Participant(leader.actor).Member
	s.Tell(Fact{Kind: Acted, Act: Cut, Actor: leader.actor, Member: member.Name, Key: leader.key, Token: leader.token})
	if err := s.Cut(ctx, member); err != nil {
		return err
	}
	if err := s.succeeded(ctx, leader); err != nil {
		return err
	}

	s.Tell(Fact{Kind: Acted, Act: Mend, Member: member.Name})
	if err := s.Mend(member.Index); err != nil {
		return err
	}
	s.Aside("%s stands again: a new process, a new lease, a new key, and therefore the end of the queue", leader.actor)
	return s.stand(ctx, leader.actor, member.Index)
}

// leave: everyone goes, the last one first, and nothing may be left.
func leave(ctx context.Context, s *stage) error {
	queue := s.queue()
	for i := len(queue) - 1; i >= 0; i-- {
		if err := s.signal(Leave, queue[i], syscall.SIGTERM); err != nil {
			return err
		}
		if err := s.AwaitEnd(ctx, s.Participant(queue[i].actor)); err != nil {
			return err
		}
	}
	keys, leases, err := s.Leftovers(ctx, electionName)
	if err == nil {
		s.Tell(Fact{Kind: Left, Keys: keys, Leases: leases})
	}
	return err
}

// signal records the act and sends the signal.
func (s *stage) signal(act Act, c *candidacy, sig syscall.Signal) error {
	s.Tell(Fact{Kind: Acted, Act: act, Actor: c.actor, Key: c.key, Token: c.token})
	return s.Participant(c.actor).Signal(sig)
}

// leader is who leads, by what the candidates report.
func (s *stage) leader() (*candidacy, error) {
	queue := s.queue()
	if len(queue) == 0 || queue[0].won.IsZero() {
		return nil, errNobody
	}
	return queue[0], nil
}

// awaitLeader is leader, once there is one: on a busy machine a lease may be lost
// that nobody meant to end.
func (s *stage) awaitLeader(ctx context.Context) (*candidacy, error) {
	err := s.Await(ctx, "somebody leads", func(facts []Fact) bool {
		queue := standing(facts)
		return len(queue) > 0 && !queue[0].won.IsZero()
	})
	if err != nil {
		return nil, err
	}
	return s.leader()
}

// succeeded blocks until somebody has succeeded the old leader and the old one's
// process has ended, and tries both their tokens.
func (s *stage) succeeded(ctx context.Context, old *candidacy) error {
	var next *candidacy
	err := s.Await(ctx, old.actor+" has a successor", func(facts []Fact) bool {
		f := scenario.Last(facts, func(f Fact) bool { return f.Kind == Won && f.Token > old.token })
		if f != nil {
			next = &candidacy{actor: f.Actor, key: f.Key, token: f.Token}
		}
		return f != nil
	})
	if err != nil {
		return err
	}
	if err := s.AwaitEnd(ctx, s.Participant(old.actor)); err != nil {
		return err
	}
	if err := errors.Join(s.write(ctx, old), s.write(ctx, next)); err != nil {
		return err
	}
	s.tellHandover()
	return nil
}
