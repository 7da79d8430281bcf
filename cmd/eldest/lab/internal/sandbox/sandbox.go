package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// Defaults and limits of a Config.
const (
	DefaultMembers  = 3
	DefaultElection = "jobs"
	// DefaultTTL is long enough for readers to follow what happens meanwhile, and short enough to
	// wait for.
	DefaultTTL = 5 * time.Second
	// MinTTL is longer than the timeout of the heartbeats; MaxTTL is the longest wait for a lease.
	MinTTL = 2 * time.Second
	MaxTTL = time.Minute
	// MostParticipants is how many participants there may be at a time, without those that have left.
	MostParticipants = 64
)

// ErrInvalid is returned by Open for an invalid Config; nothing was started.
var ErrInvalid = errors.New("invalid sandbox")

// Config configures a sandbox. All fields but Election and Member are required.
type Config struct {
	// Members is 1, 3 or 5.
	Members int
	// TTL is the TTL of the participants' leases, in whole seconds, MinTTL to MaxTTL.
	TTL time.Duration
	// Election is the name of the election; "" means DefaultElection.
	Election string
	// Start are the participants at the beginning.
	Start []feed.Kind
	// Version is the version of the command, for Info.
	Version string

	// Executable is the program of the participants: see participant.Launch.
	Executable string
	// Member is the command line of a member of etcd, to which the member's flags are appended; nil
	// means etcdtest's.
	Member []string
}

// Check returns the error that Open would return before it starts anything. The error wraps
// ErrInvalid.
func (c Config) Check() error {
	switch {
	case c.Members != 1 && c.Members != 3 && c.Members != 5:
		return fmt.Errorf("%w: --members %d: want 1, 3 or 5", ErrInvalid, c.Members)
	case c.TTL < MinTTL || c.TTL > MaxTTL || c.TTL%time.Second != 0:
		return fmt.Errorf("%w: --ttl %v: want whole seconds, %v to %v", ErrInvalid, c.TTL, MinTTL, MaxTTL)
	}
	if err := keys.Check(cmp.Or(c.Election, DefaultElection)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Sandbox is a cluster, its participants, and what was seen of them. Made by Open, ended by Close. Its
// methods may be called concurrently.
type Sandbox struct {
	cfg      Config
	log      *feed.Log
	field    *inject.Field
	messages atomic.Int64 // so far, of all eras

	// life ends with Close; watching are the goroutines that look at etcd.
	life     context.Context
	stop     context.CancelCauseFunc
	watching sync.WaitGroup

	// beginning is held by what ends an era: Play, Reset and Close.
	beginning sync.Mutex
	closed    bool // beginning guards it

	members members

	mu      sync.Mutex
	era     *era
	queue   queue
	stopped []bool // members, by an action, if they do not run
}

var _ feed.Source = (*Sandbox)(nil)

// Open starts a cluster and the participants of the beginning, and blocks until they are up, or ctx
// ends. On an error nothing is left. The caller must Close the sandbox.
func Open(ctx context.Context, cfg Config) (*Sandbox, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Election = cmp.Or(cfg.Election, DefaultElection)
	s := &Sandbox{cfg: cfg, log: feed.NewLog(), stopped: make([]bool, cfg.Members)}
	s.queue.renewed = map[int64]renewal{}
	var err error
	s.field, err = inject.Open(ctx, etcdtest.Config{
		Members: cfg.Members, Heartbeat: scenario.Heartbeat, Election: scenario.Election,
		Dir: os.TempDir(), Command: cfg.Member, Died: s.problem,
	})
	if err != nil {
		return nil, err
	}
	s.era = newEra(s.log.NowMS())
	s.life, s.stop = context.WithCancelCause(context.Background())
	for _, watch := range []func(context.Context){s.watchMembers, s.watchQueue, s.watchLeader} {
		s.watching.Go(func() { watch(s.life) })
	}
	for _, step := range s.initial() {
		if err := s.Do(ctx, step.Action); err != nil {
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
	s.stop(errClosed)
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.over(errClosed)
	s.watching.Wait()
	return s.field.Close()
}

// Info implements feed.Source.
func (s *Sandbox) Info() feed.Info {
	return feed.Info{
		Mode: "sandbox", Write: true, Election: s.cfg.Election, Endpoints: s.field.Endpoints(), Version: s.cfg.Version,
		Kinds: feed.Kinds, Rules: rules,
	}
}

// Log implements feed.Source.
func (s *Sandbox) Log() *feed.Log { return s.log }

// Done implements feed.Source. Only the first mostSteps actions are in it, and none that could not be
// played again.
func (s *Sandbox) Done() feed.Scenario { return s.present().scenario() }

// problem adds an error that no action has caused to the log.
func (s *Sandbox) problem(err error) { s.log.Add(feed.Event{Type: feed.Problem, Error: err.Error()}) }

// watchLeader adds each state of an observer to the log, until ctx ends. The observer is one as
// applications have it, with a network without faults.
func (s *Sandbox) watchLeader(ctx context.Context) {
	observer, err := observe.New(observe.Config{Election: s.cfg.Election, KV: s.field.All, Watcher: s.field.All})
	if err != nil {
		s.problem(err)
		return
	}
	defer observer.Close()
	for states := observer.Subscribe(); ; {
		state, err := states.Next(ctx)
		if err != nil {
			if ctx.Err() == nil { // etcd has refused permanently
				s.problem(err)
			}
			return
		}
		told := &feed.ObserverState{
			State: state.Kind.String(), Token: int64(state.Leader.Token), Key: state.Leader.Key,
			Value: shortened(string(state.Leader.Value)),
		}
		if state.Reason != nil {
			told.Why = shortened(state.Reason.Error())
		}
		s.log.Add(feed.Event{Type: feed.Observer, Who: "observer", Observer: told})
	}
}

// mostText is how many bytes of a text are shown.
const mostText = 4 << 10

// shortened returns a text of bounded length.
func shortened(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}
