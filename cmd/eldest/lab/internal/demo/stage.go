package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// The election, and what its leaders write. The latter is outside the election's
// range: whatever is inside is a candidate.
const (
	electionName = "demo"
	workKey      = "demo-work"
)

// stage is all that a demo needs: cluster, clients, candidates, observer.
//
// Its methods are for one goroutine, but for tell.
type stage struct {
	cfg      Config
	cluster  *etcdtest.Cluster
	clients  []*clientv3.Client // one for each member
	everyone *clientv3.Client   // one for all
	isCut    []bool
	observer *observe.Observer
	watching sync.WaitGroup

	spawner *offspring.Spawner
	actors  []*actor // all that were ever started
	named   int      // how many names were given
	// handovers is how many were told.
	handovers int

	history  story.History[Fact]
	tape     *story.Tape
	narrator *narrator
	lines    story.Lines // of JSON
}

// The members' timeouts: long enough for a busy machine, short enough for leases of
// a second.
const (
	heartbeat    = 50 * time.Millisecond
	electionTime = 500 * time.Millisecond
	startTimeout = 30 * time.Second
)

// newStage starts the cluster and connects to it. On an error nothing is left.
func newStage(ctx context.Context, cfg Config) (*stage, error) {
	s := &stage{cfg: cfg, isCut: make([]bool, cfg.Members), spawner: offspring.NewSpawner()}
	s.tape, s.lines.To = story.NewTape(cfg.Out, cfg.Style), cfg.Out
	s.narrator = newNarrator(s.tape, cfg.Style)

	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	s.cluster, err = etcdtest.New(starting, etcdtest.Config{
		Members: cfg.Members, Heartbeat: heartbeat, Election: electionTime, Dir: os.TempDir(), Command: []string{cfg.Executable, "etcd", "member"},
	})
	if err != nil {
		s.spawner.Close()
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) connect() error {
	endpoints := s.cluster.Endpoints()
	for _, ep := range endpoints {
		client, err := dial(ep)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, client)
	}
	var err error
	if s.everyone, err = dial(endpoints...); err != nil {
		return err
	}
	s.observer, err = observe.New(observe.Config{Election: electionName, KV: s.everyone, Watcher: s.everyone})
	if err != nil {
		return err
	}
	s.watching.Go(s.watch)
	return nil
}

func dial(endpoints ...string) (*clientv3.Client, error) {
	// A client that logs its attempts would talk into the story.
	return clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
}

// watch records what the observer says until it is closed.
func (s *stage) watch() {
	for sub := s.observer.Subscribe(); ; {
		state, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		f := Fact{At: time.Now(), Kind: Observed, State: state.Kind.String(), Key: state.Leader.Key, Token: state.Leader.Token}
		f.Actor = string(state.Leader.Value) // the candidates stand with their names
		if state.Reason != nil {
			f.Cause = state.Reason.Error()
		}
		s.tell(f)
	}
}

// tell records a fact and tells it to the audience. Safe for concurrent use.
func (s *stage) tell(f Fact) {
	f.At = f.At.Round(0) // as the times of other processes are
	s.history.Add(f)
	if !s.cfg.JSON {
		s.narrator.fact(f)
		return
	}
	s.lines.Print(f)
}

// client is one that talks to a member which is not cut off.
func (s *stage) client() *clientv3.Client {
	for i, cut := range s.isCut {
		if !cut {
			return s.clients[i]
		}
	}
	return s.everyone
}

// stand starts a candidate's process that talks to the given member only, and
// blocks until it waits or leads.
func (s *stage) stand(ctx context.Context, name string, member int) error {
	a := &actor{name: name, member: member, through: s.cluster.Member(member).Name}
	cmd := exec.Command(s.cfg.Executable, "campaign", electionName, name, "--json",
		"--ttl", s.cfg.TTL.String(), "--endpoints", s.cluster.Endpoints()[member])
	begin := time.Now()
	if err := launch(s.spawner, a, cmd, s.tell); err != nil {
		return err
	}
	s.actors = append(s.actors, a)
	err := s.await(ctx, fmt.Sprintf("%s stands", name), s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Actor == name })
		return a.Gone() || f != nil && f.At.After(begin) && (f.Kind == Waiting || f.Kind == Won)
	})
	if err == nil && a.Gone() {
		_, complaint := a.Result()
		err = fmt.Errorf("%s ended before it stood: %s", name, complaint)
	}
	return err
}

// await blocks until cond holds. When that takes longer than the limit it returns
// an error that says what was awaited.
func (s *stage) await(ctx context.Context, what string, limit time.Duration, cond func([]Fact) bool) error {
	overdue := fmt.Errorf("waited %v in vain for this: %s", limit, what)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	return s.history.Await(ctx, cond)
}

// last returns the newest fact that matches, in the order of their arrival.
func last(facts []Fact, match func(Fact) bool) *Fact {
	for i := len(facts) - 1; i >= 0; i-- {
		if match(facts[i]) {
			return &facts[i]
		}
	}
	return nil
}

// close ends everything, whatever goes on, and removes all data.
func (s *stage) close() error {
	for _, a := range s.actors {
		a.End()
	}
	s.spawner.Close()
	if s.observer != nil {
		s.observer.Close()
		s.watching.Wait()
	}
	var errs []error
	for _, client := range append(s.clients, s.everyone) {
		if client != nil {
			errs = append(errs, client.Close())
		}
	}
	s.tape.Flush()
	return errors.Join(append(errs, s.cluster.Close())...)
}
