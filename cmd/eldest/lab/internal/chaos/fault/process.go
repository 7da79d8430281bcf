package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
)

// What is done to the process of a participant.
func init() {
	strikers[plan.Kill] = kill
	strikers[plan.Stop] = stop
	strikers[plan.Resign] = resign
}

// kill is proven by the process having been waited for.
func kill(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	m, err := f.pick(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("kill %s", m.Who()); err != nil {
		return nil, nil, err
	}
	who := m.Who()
	err = m.Kill()
	return &Injury{Text: who, Heal: func(context.Context) error {
		if m.Alive() {
			return nil
		}
		return m.Start()
	}}, nil, err
}

// stop is proven by the kernel, which says that the process stands still; and again before
// it is told to go on.
func stop(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	m, err := f.pick(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("stop %s", m.Who()); err != nil {
		return nil, nil, err
	}
	err = m.Stop(ctx)
	if errors.Is(err, crew.ErrState) {
		return nil, nil, err
	}
	on := false
	return &Injury{Text: m.Who(), Heal: func(context.Context) error {
		if on {
			return nil
		}
		err := m.Continue()
		on = err == nil
		return err
	}}, nil, err
}

// resign is proven by the participant's answer that its tenure or candidacy is over.
func resign(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	m, err := f.pick(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("%s resigns", m.Who()); err != nil {
		return nil, nil, err
	}
	return &Injury{Text: m.Who()}, func(ctx context.Context) error {
		_, err := m.Ask(ctx, actor.Order{Do: actor.DoResign})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoEffect, err)
		}
		return nil
	}, nil
}
