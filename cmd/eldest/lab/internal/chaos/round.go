package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fault"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// healTime bounds the healing of all faults of a round: a member that restarts.
const healTime = 30 * time.Second

// Round is what became of one.
type Round struct {
	plan.Round
	// From and Till are instants of the history.
	From time.Duration `json:"from"`
	Till time.Duration `json:"till"`
	// Struck are the faults that took effect, and on whom; Unsupported those that
	// mean nothing to the contender.
	Struck      []Struck     `json:"struck"`
	Unsupported []plan.Fault `json:"unsupported,omitempty"`
	// Invalid is why the round proves nothing.
	Invalid string `json:"invalid,omitempty"`
	// Unsettled is why the election did not come to rest.
	Unsettled string `json:"unsettled,omitempty"`
	// Recovered is how long it took to.
	Recovered time.Duration `json:"recovered"`
}

// Struck is a fault that took effect.
type Struck struct {
	Fault plan.Fault `json:"fault"`
	On    string     `json:"on"`
}

// play plays one round. An error means that the series cannot go on.
func (s *stage) play(ctx context.Context, p plan.Round) (r Round, err error) {
	r = Round{Round: p, From: s.clock.Now()}
	defer func() { r.Till = s.clock.Now() }()
	if err := s.log.Add(oracle.Event{Kind: oracle.Fault, Text: fmt.Sprintf("round %d: %v", p.Number, p)}); err != nil {
		return r, err
	}
	var injuries []*fault.Injury
	for _, strike := range p.Strikes {
		inj, err := fault.Strike(ctx, s.field, strike)
		if inj != nil {
			injuries = append(injuries, inj)
		}
		if errors.Is(err, fault.ErrUnsupported) {
			r.Unsupported = append(r.Unsupported, strike.Fault)
			continue
		}
		if err != nil {
			r.Invalid = err.Error()
			break
		}
		r.Struck = append(r.Struck, Struck{strike.Fault, inj.Text})
		wait(ctx, strike.Alone)
	}
	if r.Invalid == "" && ctx.Err() == nil {
		wait(ctx, p.Hold)
	}
	// Whatever ended the round, all is healed: what is stopped must not stay so.
	if err := s.heal(injuries); err != nil {
		return r, fmt.Errorf("round %d is not healed: %w", p.Number, err)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	healed := s.clock.Now()
	if err := s.log.Add(oracle.Event{Kind: oracle.Healed}); err != nil {
		return r, err
	}
	r.Unsettled, err = s.settle(ctx, healed)
	r.Recovered = s.clock.Now() - healed
	return r, err
}

// heal ends all faults, the last one first, and blocks until etcd answers.
func (s *stage) heal(injuries []*fault.Injury) error {
	ctx, cancel := context.WithTimeout(context.Background(), healTime)
	defer cancel()
	var errs []error
	for i := len(injuries) - 1; i >= 0; i-- {
		if heal := injuries[i].Heal; heal != nil {
			err := heal(ctx)
			for err != nil && ctx.Err() == nil {
				wait(ctx, 50*time.Millisecond)
				err = heal(ctx)
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := inject.Answers(ctx, s.field.All, true, question); err != nil {
		return fmt.Errorf("etcd does not answer although nothing is wrong with it: %w", err)
	}
	return nil
}

// wait blocks for d, and reports whether ctx has lasted that long.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
