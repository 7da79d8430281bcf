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
)

// Done implements feed.Source. Only the first mostSteps actions are in it, and none that could not be
// played again.
func (s *Sandbox) Done() feed.Scenario {
	return s.present().scenario()
}

// present returns the present era.
func (s *Sandbox) present() *era {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.era
}

// Play implements feed.Source. It blocks until everything that was there has ended.
func (s *Sandbox) Play(ctx context.Context, scenario feed.Scenario) error {
	if err := s.checkScenario(scenario); err != nil {
		return err
	}
	return s.begin(ctx, scenario.Steps)
}

// reset begins anew with the participants of the beginning. Its own event comes after that of the
// beginning, at which the page forgets all that was before.
func (s *Sandbox) reset(ctx context.Context, a feed.Action) error {
	err := s.begin(ctx, s.initial())
	s.acted(s.log.NowMS(), a, err)
	return err
}

// begin ends the present era, removes all traces of it, and begins another one, in which the steps
// are played.
func (s *Sandbox) begin(ctx context.Context, steps []feed.Step) error {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if s.closed {
		return feed.Refused("%w", errClosed)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.over(errBeginsAnew)
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	err := s.clear(ctx)

	// Also after an error: the user may heal what could not be, and play again.
	e := newEra(s.log.NowMS())
	s.mu.Lock()
	s.era, s.candidates, s.named = e, map[string]*candidate{}, 0
	s.mu.Unlock()
	s.acted(e.begin, feed.Action{Do: feed.Play}, err)
	s.queue.look()
	if err != nil {
		return err
	}
	e.player.Go(func() { s.play(e, steps) })
	return nil
}

// clearTime bounds how long it takes to begin anew, besides the end of the participants.
const clearTime = 30 * time.Second

// clear heals all members, ends all participants, whose keepers need etcd, and empties the store.
func (s *Sandbox) clear(ctx context.Context) error {
	err := s.members.heal(ctx)
	s.endAll(false)
	if err != nil {
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
		_, err = client.Delete(ctx, "\x00", clientv3.WithFromKey()) // all keys
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
		due := began.Add(time.Duration(step.AfterMS * float64(time.Millisecond)))
		select {
		case <-time.After(time.Until(due)):
		case <-e.life.Done():
			return
		}
		began = time.Now()
		over := make(chan struct{})
		doing.Go(func() {
			defer close(over)
			_ = s.do(e.life, step.Action)
		})
		if !overlapping[step.Do] {
			<-over
		}
	}
}
