package chaos

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Report is what a run has found.
type Report struct {
	Contender    string        `json:"contender"`
	Seed         uint64        `json:"seed"`
	Members      int           `json:"members"`
	Participants int           `json:"participants"`
	TTL          time.Duration `json:"ttl"`
	SeriesRounds int           `json:"series_rounds"`
	// Rounds counts those that were played, Invalid those that prove nothing, of
	// which InvalidBecause says why, a line each; it also tells of whole series.
	// Wanted is how many there were to be, 0 where the time decided.
	Rounds         int      `json:"rounds"`
	Wanted         int      `json:"rounds_wanted,omitempty"`
	Invalid        int      `json:"invalid"`
	InvalidBecause []string `json:"invalid_because"`
	// Interrupted says that somebody ended it.
	Interrupted bool        `json:"interrupted,omitempty"`
	Faults      []FaultLine `json:"faults"`
	Violations  []Violation `json:"violations"`
	// ByInvariant counts violations.
	ByInvariant map[string]int `json:"by_invariant"`
	// Tally adds up those of the series.
	oracle.Tally
	Seconds float64  `json:"seconds"`
	Series  []Series `json:"series"`
}

// FaultLine is what there is to say of a fault in a run.
type FaultLine struct {
	Fault plan.Fault `json:"fault"`
	// Injected counts rounds with it, Struck those in which it took effect,
	// Unsupported those in which the contender had nothing to do it to; Violations
	// counts the rounds with it in which anything was violated.
	Injected    int `json:"injected"`
	Struck      int `json:"struck"`
	Unsupported int `json:"unsupported,omitempty"`
	Violations  int `json:"violations"`
}

// Held reports whether nothing was violated, and everything proved something.
func (r *Report) Held() bool { return len(r.Violations) == 0 && !r.Void() }

// Void reports whether a part of the run proves nothing.
func (r *Report) Void() bool { return len(r.InvalidBecause) > 0 || r.Rounds == 0 && !r.Interrupted }

// Run plays series after series until there are as many rounds as are wanted, the time is
// over, or ctx ends; the report says what there is until then. It returns an error, and no
// report, only for a Config that makes no run. Whatever it started is gone when it
// returns.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Report{
		Contender: cfg.Contender, Seed: cfg.Seed, Members: cfg.Members, Participants: cfg.Participants, TTL: cfg.TTL, SeriesRounds: cfg.SeriesRounds, Wanted: cfg.Rounds,
		InvalidBecause: []string{}, Violations: []Violation{}, ByInvariant: map[string]int{}, Series: []Series{},
		Tally: oracle.Tally{Struck: map[string]int{}},
	}
	start := time.Now()
	wanted := func(played int) bool {
		return ctx.Err() == nil && (cfg.Rounds == 0 || played < cfg.Rounds) &&
			(cfg.Duration == 0 || time.Since(start) < cfg.Duration)
	}
	empty := 0 // series in a row without a round
	for seed := cfg.Seed; wanted(r.Rounds) && empty < 3; seed++ {
		before := r.Rounds
		more := func(played int) bool { return played < cfg.SeriesRounds && wanted(before+played) }
		s := playSeries(ctx, cfg, seed, more, func(s *Series, p plan.Round) {
			cfg.tell(r, s, p)
		})
		r.add(s)
		if empty++; len(s.Rounds) > 0 {
			empty = 0
		}
	}
	r.Interrupted = ctx.Err() != nil
	r.Seconds = time.Since(start).Seconds()
	r.count(cfg.Faults)
	if !r.Interrupted {
		r.prove()
	}
	return r, nil
}

// tell reports progress, if anybody wants to know.
func (c Config) tell(r *Report, s *Series, p plan.Round) {
	if c.Progress == nil {
		return
	}
	invalid := r.Invalid
	for _, round := range s.Rounds {
		if round.Invalid != "" {
			invalid++
		}
	}
	c.Progress(Progress{
		Series: s.Seed, Round: p.Number, Text: p.String(), Done: r.Rounds + len(s.Rounds), Total: c.Rounds,
		Violations: len(r.Violations), Invalid: invalid,
	})
}
