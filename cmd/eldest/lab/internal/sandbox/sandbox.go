package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// Sandbox is a cluster, its participants, and what was seen of them. Made by Open, ended by Close.
// Its methods may be called concurrently.
type Sandbox struct {
	cfg      Config
	field    *inject.Field
	log      *feed.Log
	queue    *queue
	members  *members
	messages atomic.Int64 // so far

	// work are the goroutines that look at etcd, until end is called.
	work sync.WaitGroup
	end  context.CancelFunc

	// beginning is held by what ends an era: Play, Reset and Close.
	beginning sync.Mutex
	closed    bool // beginning guards it

	mu         sync.Mutex
	era        *era
	candidates map[string]*candidate // also those that have left
	named      int                   // how many names were given
}

var _ feed.Source = (*Sandbox)(nil)

// Open starts a cluster and the participants of the beginning, and blocks until they are up, or ctx
// ends. On an error nothing is left. The caller must Close the sandbox.
func Open(ctx context.Context, cfg Config) (*Sandbox, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Election = cmp.Or(cfg.Election, DefaultElection)
	s := &Sandbox{cfg: cfg, log: feed.NewLog(), candidates: map[string]*candidate{}}
	var err error
	s.field, err = inject.Open(ctx, etcdtest.Config{
		Members: s.cfg.Members, Heartbeat: heartbeat, Election: electionTimeout, Dir: os.TempDir(), Command: s.cfg.Member, Died: s.problem,
	})
	if err != nil {
		return nil, err
	}
	s.era = newEra(s.log.NowMS())
	var life context.Context
	life, s.end = context.WithCancel(context.Background())
	s.queue, s.members = newQueue(s), newMembers(s)
	observer, err := observe.New(observe.Config{Election: s.cfg.Election, KV: s.field.All, Watcher: s.field.All})
	if err != nil {
		s.end()
		return nil, errors.Join(err, s.field.Close())
	}
	s.work.Go(func() { s.queue.follow(life) })
	s.work.Go(func() { s.observe(life, observer) })
	for i := range s.cfg.Members {
		s.work.Go(func() { s.members.follow(life, i) })
	}
	for _, a := range s.initial() {
		if err := s.Do(ctx, a.Action); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// initial returns the steps that start the participants of the beginning.
func (s *Sandbox) initial() (steps []feed.Step) {
	for _, kind := range s.cfg.Start {
		steps = append(steps, feed.Step{Action: feed.Action{Do: feed.Add, Kind: kind}})
	}
	return steps
}

// Close ends all participants and the cluster, and removes the cluster's data. A second Close does
// nothing.
func (s *Sandbox) Close() error {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.over(errClosed)
	s.endAll(true)
	s.end()
	s.work.Wait()
	return s.field.Close()
}

// endAll ends all participants, and their networks when nobody uses them any more: a keeper revokes
// the lease of its participant first. If kill is set, keepers are killed instead.
func (s *Sandbox) endAll(kill bool) {
	all := s.allCandidates()
	var ending sync.WaitGroup
	for _, c := range all {
		ending.Go(func() {
			c.gate.change(func(set *settings) { *set = settings{} })
			c.end()
			for deadline := time.Now().Add(s.cfg.TTL + keeperTime); time.Now().Before(deadline); {
				pid := c.keeper()
				if pid == 0 {
					break
				}
				if kill {
					killProcess(pid)
				}
				time.Sleep(5 * time.Millisecond)
			}
			c.disconnect()
		})
	}
	ending.Wait()
}

// killProcess kills a process that is no child of this one.
func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have ended already
		_ = p.Release()
	}
}

// keeperTime is how long a keeper may take to end, in addition to the TTL for which it tries to
// revoke a lease.
const keeperTime = 2 * time.Second

// Info implements feed.Source.
func (s *Sandbox) Info() feed.Info {
	return feed.Info{
		Mode: "sandbox", Write: true, Election: s.cfg.Election, Endpoints: s.field.Endpoints(), Version: s.cfg.Version,
		Kinds: feed.Kinds, Rules: rules,
	}
}

// Log implements feed.Source.
func (s *Sandbox) Log() *feed.Log { return s.log }

// problem adds an error that no action has caused to the log.
func (s *Sandbox) problem(err error) { s.log.Add(feed.Event{Type: feed.Problem, Error: err.Error()}) }

// nextMessage returns the ID of the next message.
func (s *Sandbox) nextMessage() int64 { return s.messages.Add(1) }

// dataKey is the key that leaders write.
func (s *Sandbox) dataKey() string { return s.cfg.Election + "-data" }

// allCandidates returns all participants, in the order of their names.
func (s *Sandbox) allCandidates() (all []*candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.named {
		if c := s.candidates[participantName(n+1)]; c != nil {
			all = append(all, c)
		}
	}
	return all
}

// knows reports whether a name is that of a participant.
func (s *Sandbox) knows(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.candidates[name] != nil
}

// nextName returns the name of the next participant.
func (s *Sandbox) nextName() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	here := 0
	for _, c := range s.candidates {
		c.mu.Lock()
		if c.state.Life != feed.Left {
			here++
		}
		c.mu.Unlock()
	}
	if here >= MostParticipants {
		return "", feed.Refused("there are %d participants, which is the limit: let one leave first", here)
	}
	s.named++
	return participantName(s.named), nil
}
