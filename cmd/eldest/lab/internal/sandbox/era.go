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

// era is the time between two beginnings of a sandbox. Each Play begins one.
type era struct {
	// life ends with the era; end ends it, with a cause. end is called with the sandbox's mutex, so
	// that no action begins after it.
	life context.Context
	end  context.CancelCauseFunc
	// actions are under way; player is what plays the era's scenario.
	actions, player sync.WaitGroup
	// begin is when it began, on the log's clock.
	begin float64

	mu   sync.Mutex
	done []doneAction // in the order in which they ended
	more bool         // than that were done
}

// doneAction is an action that was done.
type doneAction struct {
	at float64 // when it began
	feed.Action
}

var (
	errBeginsAnew = errors.New("the sandbox begins anew")
	errClosed     = errors.New("the sandbox is closed")
)

func newEra(begin float64) *era {
	e := &era{begin: begin}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e
}

// enter begins an action in the present era. The caller calls actions.Done at its end.
func (s *Sandbox) enter() (*era, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch why := context.Cause(s.era.life); {
	case errors.Is(why, errBeginsAnew):
		return nil, feed.Refused("%w: try again in a moment", why)
	case why != nil:
		return nil, feed.Refused("%w", why)
	}
	s.era.actions.Add(1)
	return s.era, nil
}

// over ends the present era and waits for its actions. The next one has not begun yet.
func (s *Sandbox) over(why error) {
	s.mu.Lock()
	e := s.era
	e.end(why)
	s.mu.Unlock()
	e.actions.Wait()
	e.player.Wait()
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

// mostGap is the longest time between two steps of a scenario that was done: a user may have read
// something meanwhile.
const mostGap = 20 * time.Second

// scenario returns what was done, in the order in which it began, so that it can be played: with
// shorter pauses, if it would take too long.
func (e *era) scenario() feed.Scenario {
	e.mu.Lock()
	defer e.mu.Unlock()
	done := slices.SortedStableFunc(slices.Values(e.done), func(a, b doneAction) int { return cmp.Compare(a.at, b.at) })
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
