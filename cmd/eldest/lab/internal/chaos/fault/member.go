package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What is done to etcd's members.
func init() {
	strikers[plan.MemberKill] = memberKill
	strikers[plan.MemberStop] = memberStop
	strikers[plan.MemberRestart] = memberRestart
	strikers[plan.Replace] = replace
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

// memberKill is proven by the process having been waited for.
func memberKill(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	i, err := f.member(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("kill member %d", i); err != nil {
		return nil, nil, err
	}
	err = f.Cluster.Member(i).Kill()
	return &Injury{Text: fmt.Sprintf("member %d", i), Heal: func(ctx context.Context) error { return revive(ctx, f, i) }}, nil, err
}

// revive restarts a member, unless it runs.
func revive(ctx context.Context, f *Field, i int) error {
	if f.Cluster.Member(i).Running() {
		return nil
	}
	return f.Cluster.Member(i).Restart(ctx)
}

// memberStop is proven by the kernel, which says that the process stands still.
func memberStop(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	i, err := f.member(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("stop member %d", i); err != nil {
		return nil, nil, err
	}
	m := f.Cluster.Member(i)
	leader, err := f.Cluster.Leader(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = m.Stop()
	return &Injury{Text: fmt.Sprintf("member %d", i), Heal: func(context.Context) error {
		if m.Running() {
			return nil
		}
		if i == leader {
			f.mu.Lock()
			f.resumed = append(f.resumed, f.Clock.Now())
			f.mu.Unlock()
		}
		return m.Cont()
	}}, nil, err
}

// memberRestart is proven by the new process, which serves.
func memberRestart(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	i, err := f.member(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("restart member %d", i); err != nil {
		return nil, nil, err
	}
	if err := f.Cluster.Member(i).Kill(); err != nil {
		return nil, nil, err
	}
	inj := &Injury{Text: fmt.Sprintf("member %d", i), Heal: func(ctx context.Context) error { return revive(ctx, f, i) }}
	return inj, nil, revive(ctx, f, i)
}

// replace is proven by the new member, which has another ID and serves.
func replace(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	if f.Cluster.Size() == 1 {
		return nil, nil, ErrUnsupported // all data would go with it
	}
	i, err := f.member(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("replace member %d", i); err != nil {
		return nil, nil, err
	}
	m := f.Cluster.Member(i)
	before := m.ID()
	again := func(ctx context.Context) error {
		if m.Running() {
			return nil
		}
		return f.Cluster.Replace(ctx, i)
	}
	err = f.Cluster.Replace(ctx, i)
	if err == nil && m.ID() == before {
		err = fmt.Errorf("%w: member %d is the old one", ErrNoEffect, i)
	}
	return &Injury{Text: fmt.Sprintf("member %d", i), Heal: again}, nil, err
}

// some chooses as many members as of says, beginning anywhere.
func some(of func(size int) int) func(*Field, context.Context, plan.Strike) ([]int, error) {
	return func(f *Field, _ context.Context, s plan.Strike) ([]int, error) {
		var chosen []int
		size := f.Cluster.Size()
		for n := range of(size) {
			chosen = append(chosen, (s.Pick+n)%size)
		}
		return chosen, nil
	}
}

// cut is proven by something that was held back on the links of each member that was cut
// off, and, of a majority, by a question that etcd cannot answer.
func cut(who func(*Field, context.Context, plan.Strike) ([]int, error)) striker {
	return func(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
		if f.Cluster.Size() == 1 {
			return nil, nil, ErrUnsupported // there is nobody else
		}
		chosen, err := who(f, ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if err := f.note("members %v: %s", chosen, s); err != nil {
			return nil, nil, err
		}
		before := make([]int64, len(chosen))
		for n, i := range chosen {
			if before[n], err = f.Cluster.Held(i); err != nil {
				return nil, nil, err
			}
		}
		for _, i := range chosen {
			err = errors.Join(err, f.Cluster.CutOneWay(i, memberWay(s)))
		}
		heal := func(context.Context) (err error) {
			for _, i := range chosen {
				err = errors.Join(err, f.Cluster.Mend(i))
			}
			return err
		}
		return &Injury{Text: fmt.Sprintf("members %v", chosen), Heal: heal}, func(ctx context.Context) error {
			held := make([]bool, len(chosen))
			err := eventually(ctx, fmt.Sprintf("that anything of members %v is held", chosen), func() (bool, error) {
				for n, i := range chosen {
					now, err := f.Cluster.Held(i)
					if err != nil {
						return false, err
					}
					held[n] = held[n] || now > before[n]
				}
				return !slices.Contains(held, false), nil
			})
			if err == nil && s.Fault == plan.CutMajority {
				err = f.mute(ctx)
			}
			return err
		}, err
	}
}

// mute blocks until etcd answers no question that takes a majority.
func (f *Field) mute(ctx context.Context) error {
	return eventually(ctx, "that etcd has no majority", func() (bool, error) {
		bounded, cancel := context.WithTimeout(ctx, muteTime)
		defer cancel()
		_, err := f.Admin.Get(bounded, f.Data)
		return err != nil, nil
	})
}

// muteTime is long for an answer of etcd, even on a busy machine.
const muteTime = 200 * time.Millisecond

func memberWay(s plan.Strike) etcdtest.Direction {
	if s.Fault == plan.CutOneWay {
		return direction(s.Way)
	}
	return etcdtest.BothWays
}
