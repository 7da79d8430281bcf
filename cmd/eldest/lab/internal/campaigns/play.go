package campaigns

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/capture"
	"github.com/eldest-io/eldest/election"
)

// member is a candidate of the scenario.
type member struct {
	lane      string
	client    *clientv3.Client
	session   contender.Session
	candidate contender.Candidate
	tenure    contender.Tenure // valid once won has delivered nil
	// won receives the result of its campaign, which giveUp cancels.
	won    chan error
	giveUp context.CancelFunc
}

// scene is a scenario that is being run.
type scene struct {
	Config
	wire    *capture.Capture
	members []*member
}

// Play runs a scenario until a candidate leads again and has finished its setup, or until ctx ends.
// The candidates then leave, which is not recorded. It blocks until they have left.
func Play(ctx context.Context, wire *capture.Capture, cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	s := &scene{Config: cfg, wire: wire}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	err := s.enter(ctx, waiting)
	if err == nil {
		err = s.act(ctx)
	}
	wire.Freeze()
	stop()
	s.leave(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// enter lets all candidates campaign, one after another. When it returns the first candidate leads,
// and each other one waits for its predecessor.
func (s *scene) enter(ctx, waiting context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for i := range s.Candidates {
		m := &member{lane: fmt.Sprintf("c%d", i+1), won: make(chan error, 1)}
		client, err := s.Dial(m.lane)
		if err != nil {
			return err
		}
		m.client = client
		s.members = append(s.members, m)
		if err := s.join(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.lane, err)
		}
		campaign, giveUp := context.WithCancel(waiting)
		m.giveUp = giveUp
		go func() {
			t, err := m.candidate.Campaign(campaign)
			m.tenure = t
			m.won <- err
			if err != nil && campaign.Err() == nil {
				fail(fmt.Errorf("%s: %w", m.lane, err))
			}
		}()
		if i > 0 {
			// The watch on its predecessor.
			if err := s.settled(ctx, m.lane, s.watchesAtFirst()+1, s.looks()); err != nil {
				return err
			}
			continue
		}
		if err := s.leads(ctx, m); err != nil {
			return err
		}
	}
	if s.Act.silent() {
		return s.renewed(ctx)
	}
	return nil
}

// join opens a session and makes a candidate. Eldest's registers, waits until that has been
// recorded, and then waits for its predecessor; etcd's registers when it begins to wait.
func (s *scene) join(ctx context.Context, m *member) error {
	c, err := contender.Named(s.Contender)
	if err != nil {
		return err
	}
	if ours, ok := c.(contender.Ours); ok {
		ours.Registered = func(election.Position) { _ = s.settled(ctx, m.lane, s.watchesAtFirst(), 0) }
		// No liveness checks of watches, whose times would vary.
		ours.Election = func(cfg *election.Config) { cfg.WatchCheck = -1 }
		c = ours
	}
	if m.session, err = c.Open(ctx, m.client, s.TTL); err != nil {
		return err
	}
	m.candidate, err = m.session.Candidate(s.Election, m.lane)
	return err
}

// withdraw makes a candidate leave the queue: by a call if it has such a method, else by cancelling
// its campaign's context.
func (m *member) withdraw(ctx context.Context) error {
	if c, ok := m.candidate.(interface{ Withdraw(context.Context) error }); ok {
		return c.Withdraw(ctx)
	}
	m.giveUp()
	select {
	case err := <-m.won:
		if err == nil {
			return fmt.Errorf("%s leads although it should have withdrawn", m.lane)
		}
		return nil // its context has ended
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leads waits until a candidate leads.
func (s *scene) leads(ctx context.Context, m *member) error {
	select {
	case err := <-m.won:
		if err != nil {
			return fmt.Errorf("%s: %w", m.lane, err)
		}
		s.wire.Note(m.lane, "leads")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// act carries out the act, and waits until its consequences are complete.
func (s *scene) act(ctx context.Context) error {
	leader, second := s.members[0], s.members[1]
	switch s.Act {
	case Resign:
		s.wire.Note(leader.lane, "resigns")
		if err := leader.tenure.Resign(ctx); err != nil {
			return err
		}
	case Withdraw:
		s.wire.Note(second.lane, "withdraws")
		if err := second.withdraw(ctx); err != nil {
			return err
		}
		third := s.members[2]
		return s.settled(ctx, third.lane, s.watchesAtFirst()+2, 2*s.looks())
	case Delete:
		if err := s.remove(ctx, leader.tenure.Key()); err != nil {
			return err
		}
		if err := s.told(ctx, leader); err != nil {
			return err
		}
		return s.leads(ctx, second)
	case Crash:
		s.wire.Note(leader.lane, "crashes")
		s.wire.Cut(leader.lane)
		// Its process has ended: none of its messages arrives any more, not even the end of its
		// connection, which etcd would ignore.
		_ = leader.client.Close()
	case Cut:
		s.wire.Note(leader.lane, "is partitioned")
		s.wire.Cut(leader.lane)
		if err := s.told(ctx, leader); err != nil {
			return err
		}
		s.wire.Note(leader.lane, "no longer leads")
	}
	return s.leads(ctx, second)
}

// told waits until a leader is notified that its tenure is over. Etcd's package notifies it only of
// the lease's end; it does not notice a deleted key.
func (s *scene) told(ctx context.Context, m *member) error {
	if s.Contender == contender.Concurrency && s.Act == Delete {
		return nil
	}
	select {
	case <-m.tenure.Context().Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// remove deletes a key as an operator does.
func (s *scene) remove(ctx context.Context, key string) error {
	client, err := s.Dial("operator")
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	_, err = client.Delete(ctx, key)
	return err
}

// leave ends all candidates, when the recording has ended.
func (s *scene) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	for _, m := range s.members {
		s.wire.Mend(m.lane) // so that its lease is revoked, also if the scenario was interrupted
		if m.session != nil && m.session.Close(ctx) != nil {
			m.session.Abandon()
		}
		_ = m.client.Close()
	}
}
