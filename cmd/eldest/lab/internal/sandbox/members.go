package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	// memberPause is the time between two looks at a member.
	memberPause = 500 * time.Millisecond
	// memberTime is how long a member may take to answer.
	memberTime = 400 * time.Millisecond
)

// members looks at etcd's members, each on its own, so that one that does not answer delays no other.
type members struct {
	in *Sandbox
	// acting is held while an action is done to a member.
	acting sync.Mutex
	poked  []chan struct{} // by member: has a value if it is to be looked at now

	mu      sync.Mutex
	states  []feed.MemberState
	stopped []bool // by an action
}

func newMembers(in *Sandbox) *members {
	m := &members{in: in}
	for i := range in.field.Size() {
		member := in.field.Member(i)
		m.poked = append(m.poked, make(chan struct{}, 1))
		m.states = append(m.states, feed.MemberState{Name: member.Name, Endpoint: member.Endpoint, State: feed.MemberUnknown})
		m.stopped = append(m.stopped, false)
	}
	return m
}

// follow looks at a member until ctx ends, and adds what has changed to the log.
func (m *members) follow(ctx context.Context, i int) {
	for ctx.Err() == nil {
		m.set(i, m.look(ctx, i))
		select {
		case <-time.After(memberPause):
		case <-m.poked[i]:
		case <-ctx.Done():
		}
	}
}

// look returns the state of a member.
func (m *members) look(ctx context.Context, i int) feed.MemberState {
	member := m.in.field.Member(i)
	state := feed.MemberState{Name: member.Name, Endpoint: member.Endpoint, State: m.halted(i)}
	if state.State != "" {
		return state
	}
	once, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	status, err := m.in.field.Each[i].Status(once, member.Endpoint)
	halted := m.halted(i) // meanwhile
	switch {
	case halted != "":
		state.State = halted
	case err != nil:
		state.State = feed.MemberUnknown
	default:
		state.Revision, state.RaftTerm = status.Header.GetRevision(), status.RaftTerm
		switch status.Leader {
		case 0:
			state.State = feed.MemberUnknown
		case member.ID():
			state.State = feed.MemberLeads
		default:
			state.State = feed.MemberFollows
		}
	}
	return state
}

// halted returns the state of a member that does not run; "" if it runs.
func (m *members) halted(i int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.in.field.Member(i).Running():
		return ""
	case m.stopped[i]:
		return feed.MemberStopped
	default:
		return feed.MemberDown
	}
}

// set keeps the state of a member, and adds all states to the log if it has changed.
func (m *members) set(i int, state feed.MemberState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states[i] != state {
		m.states[i] = state
		m.in.log.Add(feed.Event{Type: feed.Members, Members: slices.Clone(m.states)})
	}
}

// before notes whether an action stops a member.
func (m *members) before(i int, stops bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped[i] = stops
}

// after shows the effect of an action on a member. The others are looked at soon, as another one may
// lead now.
func (m *members) after(ctx context.Context, i int) {
	m.set(i, m.look(ctx, i))
	for _, poked := range m.poked {
		select {
		case poked <- struct{}{}:
		default:
		}
	}
}

// running counts the members that run.
func (m *members) running() (n int) {
	for i := range m.in.field.Size() {
		if m.in.field.Member(i).Running() {
			n++
		}
	}
	return n
}

// restart starts members that are down, and blocks until they serve. Without a majority they cannot
// serve, and it blocks until their processes run.
func (m *members) restart(ctx context.Context, down ...int) error {
	size := m.in.field.Size()
	if m.running()+len(down) > size/2 {
		return brief(m.in.field.Restart(ctx, down...))
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := m.in.field.Restart(short, down...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // they have started, and wait for others
	}
	return brief(err)
}

// heal continues and restarts all members.
func (m *members) heal(ctx context.Context) error {
	m.acting.Lock()
	defer m.acting.Unlock()
	var down []int
	for i := range m.in.field.Size() {
		switch m.halted(i) {
		case feed.MemberStopped:
			if err := m.in.field.Member(i).Cont(); err != nil {
				return err
			}
		case feed.MemberDown:
			down = append(down, i)
		}
	}
	if err := m.restart(ctx, down...); err != nil {
		return err
	}
	for i := range m.in.field.Size() {
		m.before(i, false)
		m.after(ctx, i)
	}
	return nil
}

// member carries out an action on a member that was found in one of the given states; "" is a member
// that runs. stops says whether it is stopped then.
func (t *task) member(ctx context.Context, do func(*etcdtest.Member) error, stops bool, advice string, states ...string) error {
	m, member := t.in.members, t.in.field.Member(t.a.Member)
	m.acting.Lock()
	defer m.acting.Unlock()
	if found := m.halted(t.a.Member); !slices.Contains(states, found) {
		if found == "" {
			found = "running"
		}
		return feed.Refused("%s is %s: %s", member.Name, found, advice)
	}
	m.before(t.a.Member, stops)
	err := do(member)
	m.after(ctx, t.a.Member)
	if err != nil {
		return fmt.Errorf("%s: %w", member.Name, err)
	}
	return nil
}

func (t *task) memberKill(ctx context.Context) error {
	return t.member(ctx, (*etcdtest.Member).Kill, false, "restart it first", "", feed.MemberStopped)
}

func (t *task) memberStop(ctx context.Context) error {
	return t.member(ctx, (*etcdtest.Member).Stop, true, "only a running member can be stopped", "")
}

func (t *task) memberContinue(ctx context.Context) error {
	return t.member(ctx, (*etcdtest.Member).Cont, false, "only a stopped member can be continued", feed.MemberStopped)
}

func (t *task) memberRestart(ctx context.Context) error {
	restart := func(member *etcdtest.Member) error { return t.in.members.restart(ctx, member.Index) }
	return t.member(ctx, restart, false, "kill it first", feed.MemberDown)
}

// brief returns an error without the end of etcd's log that follows it, besides the first line.
func brief(err error) error {
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	lines := strings.SplitN(err.Error(), "\n", 3)
	return errors.New(lines[0] + ": " + shortened(strings.TrimSpace(lines[1])))
}

// moveLeader is seen by a majority, which follows the new leader.
func (t *task) moveLeader(ctx context.Context) error {
	return t.member(ctx, func(member *etcdtest.Member) error {
		return t.in.field.MoveLeader(ctx, member.Index)
	}, false, "only a running member can lead", "")
}
