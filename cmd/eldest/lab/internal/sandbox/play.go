package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/retry"
)

// checkScenario checks a scenario before anything of it is done: the participants that it names are
// those that it has added before.
func (s *Sandbox) checkScenario(scenario feed.Scenario) error {
	if err := scenario.Check(); err != nil {
		return feed.Refused("%w", err)
	}
	if n := len(scenario.Steps); n > mostSteps {
		return feed.Refused("the scenario has %d steps: want %d at most", n, mostSteps)
	}
	added, total := map[string]bool{}, 0.0
	for i, step := range scenario.Steps {
		err := s.check(step.Action)
		switch {
		case !(step.AfterMS >= 0): // NaN is refused as well
			return feed.Refused("step %d: %v ms after the step before: want 0 or more", i+1, step.AfterMS)
		case err != nil:
			return fmt.Errorf("step %d: %w", i+1, err)
		case step.Message != 0:
			return feed.Refused("step %d: messages have other numbers each time: use on and match", i+1)
		case step.Do == feed.Add:
			added[participantName(len(added)+1)] = true
		case step.On != "" && !added[step.On]:
			return feed.Refused("step %d: there is no participant %.64q then: %d were added before",
				i+1, step.On, len(added))
		}
		total += step.AfterMS
	}
	if total > feed.Milliseconds(longest) {
		return feed.Refused("the scenario takes longer than %v", longest)
	}
	return nil
}

// Play implements feed.Source. It blocks until everything that was there has ended.
func (s *Sandbox) Play(ctx context.Context, scenario feed.Scenario) error {
	if err := s.checkScenario(scenario); err != nil {
		return err
	}
	return s.begin(ctx, scenario.Steps)
}

// begin ends the present era, removes all traces of it, and begins another one, in which the steps are
// played.
func (s *Sandbox) begin(ctx context.Context, steps []feed.Step) error {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if s.closed {
		return feed.Refused("%w", errClosed)
	}
	ctx, cancel := endsWith(ctx, s.life)
	defer cancel()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.over(errBeginsAnew)
	err := s.clear(ctx)

	// Also after an error: the user may heal what could not be, and play again.
	e := newEra(s.log.NowMS())
	s.mu.Lock()
	s.era = e
	s.mu.Unlock()
	s.acted(e.begin, feed.Action{Do: feed.Play}, err)
	s.showQueue(func(*queue) {}) // the page has forgotten it
	if err == nil {
		e.running.Go(func() { s.play(e, steps) }) // beginning is held: the era cannot end before
	}
	return err
}

// clearTime bounds how long it takes to begin anew, besides the end of the participants.
const clearTime = 30 * time.Second

// clear heals all members and empties the store. No key of it is shown any more then.
func (s *Sandbox) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	if err := s.healMembers(ctx); err != nil {
		return err
	}
	if err := inject.Answers(ctx, s.field.All, true, time.Second); err != nil {
		return fmt.Errorf("etcd does not answer although all its members run: %w", err)
	}
	return s.field.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
		leases, err := client.Leases(ctx)
		if err != nil {
			return err
		}
		for _, l := range leases.Leases {
			if _, err := client.Revoke(ctx, l.ID); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
				return err
			}
		}
		if _, err = client.Delete(ctx, "\x00", clientv3.WithFromKey()); err != nil { // all keys
			return err
		}
		_, err = s.readQueue(ctx, client, 0)
		return err
	})
}

// overlapping are the actions that may wait for something that a later step does, such as the release
// of a message. The player does not wait for them.
var overlapping = map[string]bool{feed.Resign: true, feed.Leave: true, feed.SetRule: true, feed.Transfer: true}

// play does the steps of a scenario at their times, each after the one before, until the era ends.
// Their errors are in the log.
func (s *Sandbox) play(e *era, steps []feed.Step) {
	var doing sync.WaitGroup
	defer doing.Wait()
	began := time.Now() // of the step before
	for _, step := range steps {
		if retry.Sleep(e.ctx, time.Until(began.Add(milliseconds(step.AfterMS)))) != nil {
			return
		}
		began = time.Now()
		over := make(chan struct{})
		doing.Go(func() {
			defer close(over)
			_ = s.Do(e.ctx, step.Action)
		})
		if !overlapping[step.Do] {
			<-over
		}
	}
}

// milliseconds is the opposite of feed.Milliseconds.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// endsWith returns a context that ends with ctx, and with another one.
func endsWith(ctx, other context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return both, func() {
		stop()
		cancel(nil)
	}
}
