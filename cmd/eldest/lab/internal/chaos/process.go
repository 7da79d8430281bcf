package chaos

import (
	"context"
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// ofParticipant makes an injector of what is done to one participant that has the role.
func ofParticipant(do func(context.Context, *series, *candidate, Injection) (healer, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (on string, heal healer, err error) {
		c, err := s.pick(ctx, in)
		if err != nil {
			return "", nil, err
		}
		s.note("%s: %s", c.who, in)
		heal, err = do(ctx, s, c, in)
		return c.who, heal, err
	}
}

// pick finds a participant that has the role. It blocks until there is one, or ctx ends.
func (s *series) pick(ctx context.Context, in Injection) (chosen *candidate, err error) {
	err = inject.Until(ctx, fmt.Sprintf("that anybody is %s", in.On), func(context.Context) (bool, error) {
		all := s.living()
		// A clock must not be wrong where nothing covers that; then the one that will lead is as good.
		anybody := in.Fault == Skew && in.On == Leader && slices.ContainsFunc(all, func(c *candidate) bool { return c.tight && c.is(Leader) })
		fit := slices.DeleteFunc(all, func(c *candidate) bool { return in.Fault == Skew && c.tight || !anybody && !c.is(in.On) })
		if len(fit) > 0 {
			chosen = fit[in.Pick%len(fit)]
		}
		return chosen != nil, nil
	})
	return chosen, err
}

// kill is proven by the process having been waited for.
func kill(_ context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	s.crash(c)
	return func(context.Context) error {
		if s.seat(c.index) != c {
			return nil
		}
		return s.start(c.index)
	}, nil
}

// stop is proven by the kernel, which says that the process is stopped; and again before
// it is told to go on.
func stop(_ context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	if err := c.Suspend(); err != nil {
		return func(context.Context) error { return c.Resume() }, err
	}
	s.tell(oracle.Event{Kind: oracle.Stopped, Who: c.who})
	on := false
	return func(context.Context) error {
		if on {
			return nil
		}
		if still, err := etcdtest.Stopped(c.Pid()); err != nil || !still {
			return fmt.Errorf("%s went on by itself", c.who)
		}
		s.tell(oracle.Event{Kind: oracle.Continued, Who: c.who})
		on = true
		return c.Resume()
	}, nil
}

// resign is proven by the participant, which tells that its tenure or candidacy is over.
func resign(ctx context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	return nil, s.order(ctx, c, participant.Order{Do: participant.DoResign}, "that "+c.who+" resigns", func(e oracle.Event) bool {
		return e.Kind == oracle.Ended || e.Kind == oracle.Failed
	})
}

// skew is proven by the participant: the election has read its clock, and that has run at
// the wrong rate.
func skew(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	if s.cfg.Contender != contender.Eldest { // needsClock
		return nil, errUnsupported
	}
	heal := func(context.Context) error { return c.order(participant.Order{Do: participant.DoRate, Rate: 1}) }
	return heal, s.order(ctx, c, participant.Order{Do: participant.DoRate, Rate: in.Rate}, "that anybody reads the clock of "+c.who, func(e oracle.Event) bool {
		return e.Kind == oracle.Fault && e.Text == participant.RateText(in.Rate)
	})
}
