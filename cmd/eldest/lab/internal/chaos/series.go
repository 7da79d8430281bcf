package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Series is what became of one.
type Series struct {
	Seed   uint64  `json:"seed"`
	Rounds []Round `json:"rounds"`
	// Violations are those of all rounds.
	Violations []Violation `json:"violations"`
	// Invalid is why the series, beyond single rounds, proves nothing.
	Invalid []string     `json:"invalid,omitempty"`
	Tally   oracle.Tally `json:"tally"`
	// Kept is where its history is, "" if nowhere.
	Kept    string  `json:"kept,omitempty"`
	Seconds float64 `json:"seconds"`
}

// beginTime is how long all processes may take to start, beside the time to recover.
const beginTime = 20 * time.Second

// partingTime bounds the departure of all participants, beside three TTLs.
const partingTime = 10 * time.Second

// playSeries plays rounds on a stage of their own while more says so, and judges them.
// begun is called before each.
func playSeries(ctx context.Context, cfg Config, seed uint64, more func(played int) bool, begun func(*Series, plan.Round)) (out Series) {
	out = Series{Seed: seed, Violations: []Violation{}}
	start := time.Now()
	defer func() { out.Seconds = time.Since(start).Seconds() }()
	s, err := build(ctx, cfg)
	if err != nil {
		out.fault(ctx, err)
		return out
	}
	if err := s.perform(ctx, &out, more, begun); err != nil {
		out.fault(ctx, err)
	}
	if err := s.halt(); err != nil {
		// Whoever judged it would miss what is only not recorded.
		out.Invalid = append(out.Invalid, fmt.Sprintf("the history is not whole, so nothing is judged: %v", err))
	} else {
		out.judge(s, ctx.Err() != nil)
	}
	if err := s.close(); err != nil {
		out.fault(ctx, err)
	}
	return out
}

// fault notes why a series proves nothing; that it was interrupted is no reason.
func (out *Series) fault(ctx context.Context, err error) {
	if ctx.Err() == nil {
		out.Invalid = append(out.Invalid, err.Error())
	}
}

// perform plays the rounds, has everybody leave, and looks for what is left.
func (s *stage) perform(ctx context.Context, out *Series, more func(int) bool, begun func(*Series, plan.Round)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for n := 1; more(n - 1); n++ {
		p := plan.Draw(out.Seed, n, s.cfg.Faults, s.cfg.TTL)
		begun(out, p)
		r, err := s.play(ctx, p)
		if ctx.Err() != nil {
			return s.truth.Err() // the round was broken off, and counts for nothing
		}
		out.Rounds = append(out.Rounds, r)
		if err = errors.Join(err, s.crew.Err(), s.truth.Err()); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if r.Unsettled != "" {
			break // what follows would tell of this round again
		}
	}
	if n := len(out.Rounds); n > 0 && out.Rounds[n-1].Unsettled == "" {
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	return s.part(ctx)
}

// begin blocks until the election has come to rest for the first time. Processes take
// their time to start on a busy machine.
func (s *stage) begin(ctx context.Context) error {
	wrong, err := s.settle(ctx, s.clock.Now()+beginTime)
	if err == nil && wrong != "" {
		err = fmt.Errorf("the election does not begin: %s", wrong)
	}
	return err
}

// rest gives the last round all the time that it may take to recover, so that the oracle
// judges it by itself, and files the queue at its end.
func (s *stage) rest(ctx context.Context) error {
	if !wait(ctx, s.cfg.Recovery()) {
		return nil // nobody wants to know any more
	}
	return s.protocol(ctx)
}

// halt ends what is still going on, if the series was broken off, and blocks until what
// etcd has committed is recorded: whoever reads histories that are still being written
// finds a write's acknowledgement without the write.
func (s *stage) halt() error {
	s.crew.Stop()
	if err := s.store.Close(); err != nil {
		return err
	}
	if s.whole {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), healTime)
	defer cancel()
	return s.recorded(ctx)
}

// part has everybody leave, and files what is left of them.
func (s *stage) part(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, 3*s.cfg.TTL+partingTime)
	defer cancel()
	left := s.crew.Quit(bounded)
	if ctx.Err() != nil {
		return nil
	}
	if err := s.crew.Err(); err != nil {
		return err
	}
	more, err := s.leftovers(ctx)
	for _, text := range append(left, more...) {
		err = errors.Join(err, s.log.Add(oracle.Event{Kind: oracle.Left, Text: text}))
	}
	return err
}
