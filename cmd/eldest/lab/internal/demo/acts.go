package demo

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/txn"
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
	return s.await(ctx, behind.actor+" waits for somebody else", s.cfg.limits().Expiry, func(facts []Fact) bool {
		moved := last(facts, func(f Fact) bool { return f.Key == behind.key && (f.Kind == Waiting || f.Kind == Won) })
		return s.process(waiter).Gone() && moved.Predecessor != waiter.key
	})
}

// kill: the leader's process ends without a word.
func kill(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := s.signal(Kill, leader, syscall.SIGKILL); err != nil {
		return err
	}
	entries, err := s.entries(ctx, s.client())
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Key == leader.key {
		s.aside("its key is still there: etcd waits for its lease, which has %v left; nobody leads until then", entries[0].TTL)
	}
	return s.succeeded(ctx, leader)
}

// remove: an operator deletes the leader's key.
func remove(ctx context.Context, s *stage) error {
	leader, err := s.awaitLeader(ctx)
	if err != nil {
		return err
	}
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: Delete, Actor: leader.actor, Key: leader.key, Token: leader.token})
	once, cancel := context.WithTimeout(ctx, s.cfg.limits().Expiry)
	defer cancel()
	if _, err := s.client().Delete(once, leader.key); err != nil {
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
	member := s.process(leader).member
	name := s.cluster.Member(member).Name
	if s.cluster.Leads(ctx, member, electionTime) {
		s.aside("%s happens to lead etcd itself; the other members must first elect another, and leases begin anew", name)
	}
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: Cut, Actor: leader.actor, Member: name, Key: leader.key, Token: leader.token})
	if err := s.cluster.Cut(member); err != nil {
		return err
	}
	s.isCut[member] = true
	if err := s.succeeded(ctx, leader); err != nil {
		return err
	}

	s.tell(Fact{At: time.Now(), Kind: Acted, Act: Mend, Member: name})
	if err := s.cluster.Mend(member); err != nil {
		return err
	}
	s.isCut[member] = false
	s.aside("%s stands again: a new process, a new lease, a new key, and therefore the end of the queue", leader.actor)
	err = s.stand(ctx, leader.actor, member)
	return err
}

// leave: everyone goes, the last one first, and nothing may be left.
func leave(ctx context.Context, s *stage) error {
	queue := s.queue()
	for i := len(queue) - 1; i >= 0; i-- {
		if err := s.signal(Leave, queue[i], syscall.SIGTERM); err != nil {
			return err
		}
		if err := s.await(ctx, queue[i].actor+" has gone", s.cfg.limits().Expiry, func([]Fact) bool { return s.process(queue[i]).Gone() }); err != nil {
			return err
		}
	}
	return s.lookAround(ctx)
}

// lookAround records what is left in etcd, after at most the time that a lease
// may take to go.
func (s *stage) lookAround(ctx context.Context) error {
	limit := time.Now().Add(s.cfg.limits().Expiry)
	for {
		entries, err := s.entries(ctx, nil)
		if err != nil {
			return err
		}
		leases, err := s.client().Leases(ctx)
		if err != nil {
			return err
		}
		if f := (Fact{At: time.Now(), Kind: Left, Keys: len(entries), Leases: len(leases.Leases)}); f.Keys+f.Leases == 0 || f.At.After(limit) {
			s.tell(f)
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// signal records the act and sends the signal.
func (s *stage) signal(act Act, c *candidacy, sig syscall.Signal) error {
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: act, Actor: c.actor, Key: c.key, Token: c.token})
	if err := s.process(c).Signal(sig); err != nil {
		return fmt.Errorf("signal to %s: %w", c.actor, err)
	}
	return nil
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
	err := s.await(ctx, "somebody leads", s.cfg.limits().Expiry, func(facts []Fact) bool {
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
	err := s.await(ctx, old.actor+" has a successor", s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Kind == Won && f.Token > old.token })
		if f != nil {
			next = &candidacy{actor: f.Actor, key: f.Key, token: f.Token}
		}
		return f != nil
	})
	if err != nil {
		return err
	}
	err = s.await(ctx, old.actor+" has ended", s.cfg.limits().Expiry, func([]Fact) bool { return s.process(old).Gone() })
	if err != nil {
		return err
	}
	if err := errors.Join(s.write(ctx, old), s.write(ctx, next)); err != nil {
		return err
	}
	s.tellHandover()
	return nil
}

// asRefusal returns the guard's refusal in err, or nil.
func asRefusal(err error) *txn.GuardError {
	var refused *txn.GuardError
	if errors.As(err, &refused) && errors.Is(err, eldest.ErrDeposed) {
		return refused
	}
	return nil
}
