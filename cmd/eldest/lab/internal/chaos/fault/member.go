package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What is done to etcd's members.
func init() {
	strikers[plan.MemberKill] = oneMember("kill", memberKill)
	strikers[plan.MemberStop] = oneMember("stop", memberStop)
	strikers[plan.MemberRestart] = oneMember("restart", memberRestart)
	strikers[plan.Replace] = oneMember("replace", replace)
	one := func(f *Field, ctx context.Context, s plan.Strike) ([]int, error) {
		i, err := f.member(ctx, s)
		return []int{i}, err
	}
	strikers[plan.Cut] = cut(one)
	strikers[plan.CutOneWay] = cut(one)
	strikers[plan.CutLeader] = cut(one)
	strikers[plan.CutMinority] = cut(some(func(size int) int { return (size - 1) / 2 }))
	strikers[plan.CutMajority] = cut(some(func(size int) int { return size/2 + 1 }))
}

// oneMember makes a striker of what is done to one member. do may return how it is healed
// also beside an error.
func oneMember(what string, do func(ctx context.Context, f *Field, m *etcdtest.Member) (heal func(context.Context) error, err error)) striker {
	return func(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
		i, err := f.member(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := f.note("%s member %d", what, i); err != nil {
			return nil, err
		}
		heal, err := do(ctx, f, f.Member(i))
		return &Injury{Text: fmt.Sprintf("member %d", i), Heal: heal}, err
	}
}

// memberKill is proven by the process having been waited for.
func memberKill(_ context.Context, _ *Field, m *etcdtest.Member) (func(context.Context) error, error) {
	err := m.Kill()
	return unlessItRuns(m, m.Restart), err
}

// unlessItRuns makes what brings a member back repeatable.
func unlessItRuns(m *etcdtest.Member, back func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if m.Running() {
			return nil
		}
		return back(ctx)
	}
}

// memberStop is proven by the kernel, which says that the process stands still.
func memberStop(ctx context.Context, f *Field, m *etcdtest.Member) (func(context.Context) error, error) {
	leader, err := f.Leader(ctx)
	if err != nil {
		return nil, err
	}
	err = m.Stop()
	return unlessItRuns(m, func(context.Context) error {
		if m.Index == leader {
			f.mu.Lock()
			f.resumed = append(f.resumed, f.Clock.Now())
			f.mu.Unlock()
		}
		return m.Cont()
	}), err
}

// memberRestart is proven by the new process, which serves.
func memberRestart(ctx context.Context, f *Field, m *etcdtest.Member) (func(context.Context) error, error) {
	heal, err := memberKill(ctx, f, m)
	if err == nil {
		err = heal(ctx)
	}
	return heal, err
}

// replace is proven by the new member, which has another ID and serves.
func replace(ctx context.Context, f *Field, m *etcdtest.Member) (func(context.Context) error, error) {
	if f.Size() == 1 {
		return nil, ErrUnsupported // all data would go with it
	}
	before := m.ID()
	err := f.Replace(ctx, m.Index)
	if err == nil && m.ID() == before {
		err = fmt.Errorf("%w: member %d is the old one", inject.ErrNoEffect, m.Index)
	}
	return unlessItRuns(m, func(ctx context.Context) error { return f.Replace(ctx, m.Index) }), err
}

// some chooses as many members as of says, beginning anywhere.
func some(of func(size int) int) func(*Field, context.Context, plan.Strike) ([]int, error) {
	return func(f *Field, _ context.Context, s plan.Strike) ([]int, error) {
		var chosen []int
		size := f.Size()
		for n := range of(size) {
			chosen = append(chosen, (s.Pick+n)%size)
		}
		return chosen, nil
	}
}

// cut is proven by something that was held back on the links of each member that was cut
// off, and, of a majority, by a question that etcd cannot answer.
func cut(who func(*Field, context.Context, plan.Strike) ([]int, error)) striker {
	return func(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
		if f.Size() == 1 {
			return nil, ErrUnsupported // there is nobody else
		}
		chosen, err := who(f, ctx, s)
		if err != nil {
			return nil, err
		}
		if err := f.note("members %v: %s", chosen, s); err != nil {
			return nil, err
		}
		err = f.Cut(ctx, memberWay(s), chosen...)
		if err == nil && s.Fault == plan.CutMajority {
			err = inject.Answers(ctx, f.All, false, muteTime)
		}
		return &Injury{Text: fmt.Sprintf("members %v", chosen), Heal: func(context.Context) error { return f.Mend(chosen...) }}, err
	}
}

// muteTime is long for an answer of etcd, even on a busy machine.
const muteTime = 200 * time.Millisecond

func memberWay(s plan.Strike) etcdtest.Direction {
	if s.Fault == plan.CutOneWay {
		return direction(s.Way)
	}
	return etcdtest.BothWays
}
