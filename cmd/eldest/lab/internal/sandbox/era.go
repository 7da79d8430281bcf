package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// Limits of scenarios.
const (
	mostSteps = 500
	longest   = 10 * time.Minute
	// mostGap is the longest time between two steps of a scenario that was done: a user may have read
	// something meanwhile.
	mostGap = 20 * time.Second
)

var (
	errBeginsAnew = errors.New("the sandbox begins anew: try again in a moment")
	errClosed     = errors.New("the sandbox is closed")
)

// era is the time between two beginnings of a sandbox. Each Play begins one.
type era struct {
	// ctx ends with the era, and with it all that runs: actions, and the scenario that is played. Both
	// cancel and running.Add are called with the sandbox's mutex, so that no action begins after the end.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	// begin is when it began, on the log's clock.
	begin float64

	mu         sync.Mutex
	candidates []*candidate // also those that have left
	done       []doneAction // the first mostSteps, in the order in which they ended
	more       bool         // than that were done
}

// doneAction is an action that was done.
type doneAction struct {
	at float64 // when it began
	feed.Action
}

func newEra(begin float64) *era {
	e := &era{begin: begin}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e
}

// present returns the present era.
func (s *Sandbox) present() *era {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.era
}

// enter begins an action in the present era. The caller calls running.Done at its end.
func (s *Sandbox) enter() (*era, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := context.Cause(s.era.ctx); why != nil {
		return nil, feed.Refused("%w", why)
	}
	s.era.running.Add(1)
	return s.era, nil
}

// over ends the present era with all that runs, and then its participants. The next one has not begun yet.
func (s *Sandbox) over(why error) {
	s.mu.Lock()
	e := s.era
	e.cancel(why)
	s.mu.Unlock()
	e.running.Wait()
	var ending sync.WaitGroup
	for _, c := range e.all() {
		ending.Go(c.end)
	}
	ending.Wait()
}

// all returns all participants, in the order of their names.
func (e *era) all() []*candidate {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.candidates)
}

// candidate returns the participant with a name, or nil.
func (e *era) candidate(name string) *candidate {
	for _, c := range e.all() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// record keeps an action. What could not be played again, because it is too much, is not kept.
func (e *era) record(at float64, a feed.Action) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.done) < mostSteps {
		e.done = append(e.done, doneAction{at, a})
	} else {
		e.more = true
	}
}

// scenario returns what was done, in the order in which it began, so that it can be played: with
// shorter pauses, if it would take too long.
func (e *era) scenario() feed.Scenario {
	e.mu.Lock()
	defer e.mu.Unlock()
	earlier := func(a, b doneAction) int { return cmp.Compare(a.at, b.at) }
	done := slices.SortedStableFunc(slices.Values(e.done), earlier)
	scenario := feed.Scenario{Steps: []feed.Step{}}
	last, total := e.begin, 0.0
	for _, d := range done {
		after := min(max(d.at-last, 0), feed.Milliseconds(mostGap))
		scenario.Steps = append(scenario.Steps, feed.Step{AfterMS: after, Action: d.Action})
		last, total = max(last, d.at), total+after
	}
	if most := feed.Milliseconds(longest - time.Second); total > most { // the second is for rounding
		for i := range scenario.Steps {
			scenario.Steps[i].AfterMS *= most / total
		}
	}
	if e.more {
		scenario.Name = fmt.Sprintf("cut off: the first %d actions of more", mostSteps)
	}
	return scenario
}
