package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// memberPause is the time between two looks at the members, memberTime how long one may take to
	// answer.
	memberPause = 400 * time.Millisecond
	memberTime  = 400 * time.Millisecond
)

// members is what is known of etcd's members.
type members struct {
	// acting is held while an action is done to a member.
	acting sync.Mutex
	// looking is held while the members are looked at.
	looking sync.Mutex
	shown   []feed.MemberState
}

// watchMembers looks at the members until ctx ends.
func (s *Sandbox) watchMembers(ctx context.Context) {
	for more := true; more; more = retry.Sleep(ctx, memberPause) == nil {
		s.lookAtMembers()
	}
}

// lookAtMembers adds the states of the members to the log, if they have changed.
func (s *Sandbox) lookAtMembers() {
	s.members.looking.Lock()
	defer s.members.looking.Unlock()
	now := make([]feed.MemberState, s.cfg.Members)
	var asking sync.WaitGroup
	for i := range now {
		asking.Go(func() { now[i] = s.lookAtMember(i) })
	}
	asking.Wait()
	if s.life.Err() == nil && !slices.Equal(now, s.members.shown) {
		s.members.shown = now
		s.log.Add(feed.Event{Type: feed.Members, Members: now})
	}
}

// lookAtMember returns the state of a member.
func (s *Sandbox) lookAtMember(i int) feed.MemberState {
	member := s.field.Member(i)
	state := feed.MemberState{Name: member.Name, Endpoint: member.Endpoint, State: feed.MemberUnknown}
	if member.Running() {
		ctx, cancel := context.WithTimeout(s.life, memberTime)
		defer cancel()
		if status, err := s.field.Each[i].Status(ctx, member.Endpoint); err == nil {
			state.Revision, state.RaftTerm = status.Header.GetRevision(), status.RaftTerm
			switch status.Leader {
			case 0: // it knows no leader
			case member.ID():
				state.State = feed.MemberLeads
			default:
				state.State = feed.MemberFollows
			}
		}
	}
	switch s.memberLife(i) { // it may have changed meanwhile
	case feed.Stopped:
		state.State = feed.MemberStopped
	case feed.Dead:
		state.State = feed.MemberDown
	}
	return state
}

// memberLife returns the state of a member's process.
func (s *Sandbox) memberLife(i int) feed.Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.field.Member(i).Running():
		return feed.Running
	case s.stopped[i]:
		return feed.Stopped
	}
	return feed.Dead
}

// setStopped notes whether an action stops a member.
func (s *Sandbox) setStopped(i int, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[i] = stopped
}

// runningMembers counts the members that run.
func (s *Sandbox) runningMembers() (n int) {
	for i := range s.cfg.Members {
		if s.field.Member(i).Running() {
			n++
		}
	}
	return n
}

// onMember is the deed of an action on a member that makes sense in the given lives. Its effect is shown,
// and so are the other members: another one may lead now.
func onMember(lives []feed.Life, do func(*task, *etcdtest.Member) error) deed {
	return deed{aMember, nil, func(t *task) error {
		m := t.in.field.Member(t.Member)
		t.in.members.acting.Lock()
		defer t.in.members.acting.Unlock()
		if err := permit(m.Name, t.in.memberLife(m.Index), lives); err != nil {
			return err
		}
		t.in.setStopped(m.Index, t.Do == feed.MemberStop)
		err := do(t, m)
		t.in.lookAtMembers()
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		return nil
	}}
}

// restartMembers starts members that are down, and blocks until they serve. Without a majority they
// cannot serve, and it blocks until their processes run.
func (s *Sandbox) restartMembers(ctx context.Context, down ...int) error {
	if s.runningMembers()+len(down) > s.cfg.Members/2 {
		return s.field.Restart(ctx, down...)
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := s.field.Restart(short, down...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil // they have started, and wait for others
	}
	return err
}

// healMembers continues and restarts all members.
func (s *Sandbox) healMembers(ctx context.Context) error {
	s.members.acting.Lock()
	defer s.members.acting.Unlock()
	defer s.lookAtMembers()
	var down []int
	for i := range s.cfg.Members {
		switch s.memberLife(i) {
		case feed.Stopped:
			s.setStopped(i, false)
			if err := s.field.Member(i).Cont(); err != nil {
				return err
			}
		case feed.Dead:
			down = append(down, i)
		}
	}
	return brief(s.restartMembers(ctx, down...))
}
