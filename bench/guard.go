package bench

import (
	"context"
	"fmt"
	"time"
)

func init() {
	scenario(Scenario{
		Name:     "guard",
		Summary:  "a leader's guarded write beside a bare one",
		Defaults: Options{Rounds: 2000, Warmup: 50},
		Regimes: []Term{
			{Name: "put", Text: "leaders of all contenders write in turn, one write at a time"},
		},
		Metrics: []Term{
			{Name: "put", Text: "one write, under the protection that the contender offers; the floor's has none", Better: Lower},
		},
		measure: guard,
	})
}

// guard has one leader of each contender write, in turn, for as long as the scenario
// lasts: put by put, so that what a disk does to one it does to all.
func guard(ctx context.Context, r *run) error {
	p := point{regime: "put", n: 1, rounds: r.options.Rounds}
	r.plan([]point{p})
	host, err := r.host(ctx)
	if err != nil {
		return err
	}
	leaders := map[string]*sitting{}
	defer func() {
		for _, l := range leaders {
			l.turn.tidy()
		}
	}()
	return r.interleave(ctx, p, func(ctx context.Context, t *turn) error {
		l := leaders[t.contender]
		if l == nil {
			var err error
			if l, err = r.sit(ctx, t.contender, host); err != nil {
				return err
			}
			leaders[t.contender] = l
		}
		begun := time.Now()
		err := l.Put(ctx, l.key, fmt.Sprintf("%064d", begun.UnixNano()))
		took := time.Since(begun)
		if err != nil {
			// It may be the leader that failed: the next turn has a new one.
			l.turn.tidy()
			delete(leaders, t.contender)
			return err
		}
		t.took("put", took)
		return nil
	})
}

// sitting is a leader that outlasts the turns of its contender.
type sitting struct {
	Candidate
	key  string // to which it writes, and which goes with its session
	turn *turn  // which holds what is tidied up in the end
}

// sit has a candidate lead an election of its own.
func (r *run) sit(ctx context.Context, name string, host Host) (*sitting, error) {
	s := &sitting{key: fmt.Sprintf("%s-put/%s", r.name, name), turn: &turn{run: r, contender: name}}
	var err error
	if s.Candidate, err = s.turn.candidate(ctx, host, s.turn.election(), handoverTTL); err == nil {
		_, err = lead(ctx, s.Candidate)
	}
	if err != nil {
		s.turn.tidy()
		return nil, err
	}
	return s, nil
}
