package fault

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
)

func init() { strikers[plan.Skew] = skew }

// skewShown is how long a clock runs before its rate is measured.
const skewShown = 20 * time.Millisecond

// skew is proven by the participant: the election has read its clock, and that has run at
// the wrong rate.
func skew(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	if f.Contender != contender.Eldest { // plan.NeedsClock
		return nil, nil, ErrUnsupported
	}
	m, err := f.pick(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := f.note("%s: %s", m.Who(), s); err != nil {
		return nil, nil, err
	}
	who := m.Who()
	set := func(ctx context.Context, rate float64) (float64, error) {
		a, err := m.Ask(ctx, actor.Order{Do: actor.DoRate, Rate: rate})
		return a.Ran, err
	}
	_, err = set(ctx, s.Rate)
	heal := func(ctx context.Context) error {
		if !m.Alive() || m.Who() != who {
			return nil // a new life has a clock of its own
		}
		_, err := set(ctx, 1)
		return err
	}
	return &Injury{Text: who, Heal: heal}, func(ctx context.Context) error {
		for { // it is read with each renewal at the latest
			select {
			case <-time.After(skewShown):
			case <-ctx.Done():
				return fmt.Errorf("%w: nobody has read the clock", ErrNoEffect)
			}
			switch ran, err := set(ctx, s.Rate); {
			case err != nil && ctx.Err() == nil:
				return err
			case err != nil, ran == 0: // asked in vain, too, when the time is up
			case math.Abs(ran-s.Rate) > 0.001:
				return fmt.Errorf("%w: the clock ran at %.3f", ErrNoEffect, ran)
			default:
				return nil
			}
		}
	}, err
}
