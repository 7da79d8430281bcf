package fault

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
)

func init() {
	strike := participant(said, skew)
	strikers[plan.Skew] = func(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
		if f.Contender != contender.Eldest { // plan.NeedsClock
			return nil, ErrUnsupported
		}
		return strike(ctx, f, s)
	}
}

// skewShown is how long a clock runs before its rate is measured.
const skewShown = 20 * time.Millisecond

// skew is proven by the participant: the election has read its clock, and that has run at
// the wrong rate.
func skew(ctx context.Context, _ *Field, m *crew.Member, s plan.Strike) (func(context.Context) error, error) {
	who := m.Who()
	set := func(ctx context.Context, rate float64) (float64, error) {
		a, err := m.Ask(ctx, actor.Order{Do: actor.DoRate, Rate: rate})
		return a.Ran, err
	}
	heal := func(ctx context.Context) error {
		if !m.Alive() || m.Who() != who {
			return nil // a new life has a clock of its own
		}
		_, err := set(ctx, 1)
		return err
	}
	if _, err := set(ctx, s.Rate); err != nil {
		return heal, err
	}
	for { // it is read with each renewal at the latest
		select {
		case <-time.After(skewShown):
		case <-ctx.Done():
			return heal, fmt.Errorf("%w: nobody has read the clock", inject.ErrNoEffect)
		}
		switch ran, err := set(ctx, s.Rate); {
		case err != nil && ctx.Err() == nil:
			return heal, err
		case err != nil, ran == 0: // asked in vain, too, when the time is up
		case math.Abs(ran-s.Rate) > 0.001:
			return heal, fmt.Errorf("%w: the clock ran at %.3f", inject.ErrNoEffect, ran)
		default:
			return heal, nil
		}
	}
}
