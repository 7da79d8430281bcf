package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
)

// What is done to the process of a participant.
func init() {
	strikers[plan.Kill] = participant("kill %[1]s", kill)
	strikers[plan.Stop] = participant("stop %[1]s", stop)
	strikers[plan.Resign] = participant("%[1]s resigns", func(ctx context.Context, _ *Field, m *crew.Member, _ plan.Strike) (func(context.Context) error, error) {
		return nil, resign(ctx, m)
	})
}

// participant makes a striker of what is done to one participant, whose name, and the
// strike, go into the note. do may return how it is healed also beside an error.
func participant(note string, do func(ctx context.Context, f *Field, m *crew.Member, s plan.Strike) (heal func(context.Context) error, err error)) striker {
	return func(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
		m, err := f.pick(ctx, s)
		if err != nil {
			return nil, err
		}
		who := m.Who()
		if err := f.note(note, who, s); err != nil {
			return nil, err
		}
		heal, err := do(ctx, f, m, s)
		return &Injury{Text: who, Heal: heal}, err
	}
}

// kill is proven by the process having been waited for.
func kill(_ context.Context, _ *Field, m *crew.Member, _ plan.Strike) (func(context.Context) error, error) {
	err := m.Kill()
	return func(context.Context) error {
		if m.Alive() {
			return nil
		}
		return m.Start()
	}, err
}

// stop is proven by the kernel, which says that the process stands still; and again before
// it is told to go on.
func stop(_ context.Context, _ *Field, m *crew.Member, _ plan.Strike) (func(context.Context) error, error) {
	err := m.Stop()
	if errors.Is(err, crew.ErrState) {
		return nil, err
	}
	on := false
	return func(context.Context) error {
		if on {
			return nil
		}
		err := m.Continue()
		on = err == nil
		return err
	}, err
}

// resign is proven by the participant's answer that its tenure or candidacy is over.
func resign(ctx context.Context, m *crew.Member) error {
	if _, err := m.Ask(ctx, actor.Order{Do: actor.DoResign}); err != nil {
		return fmt.Errorf("%w: %w", inject.ErrNoEffect, err)
	}
	return nil
}
