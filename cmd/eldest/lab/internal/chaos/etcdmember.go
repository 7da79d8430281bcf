package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What is done to etcd's members.

// chosen is one of etcd's members, of those that have the role.
func (s *series) chosen(ctx context.Context, in Injection) (int, error) {
	if in.On == Leader {
		return s.Leader(ctx)
	}
	return in.Pick % s.Size(), nil
}

// ofMember makes an injector of what is done to one member.
func ofMember(what string, do func(context.Context, *series, *etcdtest.Member) (healer, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		i, err := s.chosen(ctx, in)
		if err != nil {
			return "", nil, err
		}
		s.note("%s member %d", what, i)
		heal, err := do(ctx, s, s.Member(i))
		return fmt.Sprintf("member %d", i), heal, err
	}
}

// unlessItRuns makes what brings a member back repeatable.
func unlessItRuns(m *etcdtest.Member, back healer) healer {
	return func(ctx context.Context) error {
		if m.Running() {
			return nil
		}
		return back(ctx)
	}
}

// memberKill is proven by the process having been waited for.
func memberKill(_ context.Context, _ *series, m *etcdtest.Member) (healer, error) {
	err := m.Kill()
	return unlessItRuns(m, m.Restart), err
}

// memberStop is proven by the kernel, which says that the process is stopped.
func memberStop(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return nil, err
	}
	err = m.Stop()
	return unlessItRuns(m, func(context.Context) error {
		if m.Index == leader {
			s.resumed = append(s.resumed, s.now())
		}
		return m.Cont()
	}), err
}

// memberRestart is proven by the new process, which serves.
func memberRestart(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	heal, err := memberKill(ctx, s, m)
	if err == nil {
		err = heal(ctx)
	}
	return heal, err
}

// replace is proven by the new member, which has another ID and serves.
func replace(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	before := m.ID()
	err := s.Replace(ctx, m.Index)
	if err == nil && m.ID() == before {
		err = fmt.Errorf("%w: member %d is the old one", inject.ErrNoEffect, m.Index)
	}
	return unlessItRuns(m, func(ctx context.Context) error { return s.Replace(ctx, m.Index) }), err
}

// theOne is the member that has the role.
func theOne(ctx context.Context, s *series, in Injection) ([]int, error) {
	i, err := s.chosen(ctx, in)
	return []int{i}, err
}

// some chooses as many members as of says, beginning anywhere.
func some(of func(size int) int) func(context.Context, *series, Injection) ([]int, error) {
	return func(_ context.Context, s *series, in Injection) (chosen []int, err error) {
		for n := range of(s.Size()) {
			chosen = append(chosen, (in.Pick+n)%s.Size())
		}
		return chosen, nil
	}
}

// cut is proven by something that was held back on the links of each member that was
// partitioned.
func cut(which func(context.Context, *series, Injection) ([]int, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		chosen, err := which(ctx, s, in)
		if err != nil {
			return "", nil, err
		}
		s.note("members %v: %s", chosen, in)
		return fmt.Sprintf("members %v", chosen), func(context.Context) error { return s.Mend(chosen...) }, s.Cut(ctx, in.Way.direction(), chosen...)
	}
}

// mute adds the proof that etcd cannot answer a question.
func mute(fault injector) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		on, heal, err := fault(ctx, s, in)
		if err == nil {
			err = inject.Answers(ctx, s.All, false, muteTime)
		}
		return on, heal, err
	}
}

// muteTime is long for an answer of etcd, even on a busy machine.
const muteTime = 200 * time.Millisecond
