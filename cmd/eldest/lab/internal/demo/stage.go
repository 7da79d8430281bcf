package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/observe"
)

// The election, and what its leaders write. The latter is outside the election's
// range: whatever is inside is a candidate.
const (
	electionName = "demo"
	workKey      = "demo-work"
)

// stage is the plan of a demo, and what it has beside its environment: the observer, and
// the words.
type stage struct {
	*scenario.Env[Fact]
	cfg      Config
	observer *observe.Observer
	watching sync.WaitGroup

	named int // how many names were given
	// handovers is how many were told.
	handovers int
	// names are the candidates' by key, and led has the keys that have won, for the words.
	names map[string]string
	led   map[string]bool
	// beats has the names of those with heartbeats.
	beats map[string]bool
}

// Run plays a demo: see scenario.Run. It returns ErrInvalid before anything was started.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.check()
	if err != nil {
		return err
	}
	return scenario.Run(ctx, cfg.Config, &stage{cfg: cfg, names: make(map[string]string), led: make(map[string]bool), beats: make(map[string]bool)})
}

// Open begins to observe.
func (s *stage) Open(env *scenario.Env[Fact]) (err error) {
	s.Env = env
	s.observer, err = observe.New(observe.Config{Election: electionName, KV: s.All, Watcher: s.All})
	if err == nil {
		s.watching.Go(s.watch)
	}
	return err
}

// Close ends the observer.
func (s *stage) Close() {
	if s.observer != nil {
		s.observer.Close()
		s.watching.Wait()
	}
}

// watch records what the observer says until it is closed.
func (s *stage) watch() {
	for sub := s.observer.Subscribe(); ; {
		state, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		f := Fact{Kind: Observed, State: state.Kind.String(), Key: state.Leader.Key, Token: state.Leader.Token}
		f.Actor = string(state.Leader.Value) // the candidates stand with their names
		if state.Reason != nil {
			f.Cause = state.Reason.Error()
		}
		s.Tell(f)
	}
}

// stand starts a candidate's process that talks to the given member only, and
// blocks until it waits or leads.
func (s *stage) stand(ctx context.Context, name string, member int) error {
	words := []string{"campaign", electionName}
	if s.beats[name] {
		words = []string{"campaign", "--heartbeat", s.cfg.Heartbeat.String(), electionName}
	}
	_, _, err := s.Start(ctx, name, member, func(f Fact) bool {
		return f.Actor == name && (f.Kind == Waiting || f.Kind == Won)
	}, words...)
	return err
}

// Introduction tells what is about to happen.
func (s *stage) Introduction() string {
	how := "each act once"
	if s.cfg.Duration > 0 {
		how = fmt.Sprintf("acts for %v", s.cfg.Duration)
	}
	return fmt.Sprintf("eldest demo: an etcd cluster of %s, %s, leases of %v; %s",
		story.Count(s.cfg.Members, "member"), story.Count(s.cfg.Candidates, "candidate"), s.cfg.TTL, how)
}
