package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Env is what a plan is carried out in: a cluster with its faults, the processes of the
// participants (Field.Spawner), and the history of what they report and of what is done.
type Env[F any] struct {
	*inject.Field
	History[F]
}

// Open starts the cluster and blocks until it serves, or ctx ends. On an error nothing is left.
// The caller must Close the environment, which ends all participants.
func Open[F any](ctx context.Context, cfg etcdtest.Config) (*Env[F], error) {
	field, err := inject.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Env[F]{Field: field}, nil
}

// Sleep blocks for a time. The end of ctx ends it, with its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// History is all facts of a run, in the order in which this process received them. The zero
// value is ready; safe for concurrent use.
type History[F any] struct {
	mu      sync.Mutex
	facts   []F
	changed chan struct{} // closed and replaced by each Add
}

// Add appends a fact and wakes everybody who awaits one. It never blocks for long.
func (h *History[F]) Add(f F) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = append(h.facts, f)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Facts returns a copy.
func (h *History[F]) Facts() []F {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.facts)
}

// Await blocks until cond holds for the facts so far, or ctx ends, whose cause it returns.
// After the limit it returns an error that says what was awaited. cond must not keep or change
// its argument.
func (h *History[F]) Await(ctx context.Context, limit time.Duration, what string, cond func([]F) bool) error {
	overdue := fmt.Errorf("waited %v in vain for this: %s", limit, what)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	for {
		h.mu.Lock()
		if cond(h.facts) {
			h.mu.Unlock()
			return nil
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Last returns the newest fact that matches, in the order of their arrival, or nil.
func Last[F any](facts []F, match func(F) bool) *F {
	for i := len(facts) - 1; i >= 0; i-- {
		if match(facts[i]) {
			return &facts[i]
		}
	}
	return nil
}

// The members' timeouts: long enough for a busy machine, short enough for leases of
// two seconds, which no fault of one member must cost (TTL >= 4 election timeouts).
const (
	Heartbeat    = 50 * time.Millisecond
	Election     = 500 * time.Millisecond
	startTimeout = 30 * time.Second
)

// MinTTL is the shortest lease that is not lost for want of a processor on a busy machine.
const MinTTL = 2 * time.Second

// ErrInvalid is returned for a Config that makes no run; nothing was started.
var ErrInvalid = errors.New("invalid run")

// ErrViolated is returned by Run when a check failed or the plan did not come to its end; the
// summary says which.
var ErrViolated = errors.New("not everything held")

// Config says how to run a plan. All but JSON and Style is required.
type Config struct {
	// Members is 1, 3 or 5.
	Members int
	// TTL is the participants' time to live; etcd rounds it up to seconds.
	TTL time.Duration
	// Executable is the eldest command.
	Executable string
	// Out is where facts are written: as text, or as JSON lines.
	Out   io.Writer
	JSON  bool
	Style story.Style
}

// Check refuses a TTL that makes no run, and rounds it as etcd does.
func (c *Config) Check(maxTTL time.Duration) error {
	if c.TTL < MinTTL || c.TTL > maxTTL {
		return fmt.Errorf("%w: a TTL of %v; it can be %v to %v", ErrInvalid, c.TTL, MinTTL, maxTTL)
	}
	c.TTL = (c.TTL + time.Second - 1).Truncate(time.Second)
	return nil
}

// Told is the longest time, on a busy machine, for a hand-over of which etcd is notified. One
// that waits for a lease takes what the lease has left, which is most of a TTL: what takes
// longer than half of one may have waited.
func (c Config) Told() time.Duration { return c.TTL / 2 }

// Expiry is the longest time for a hand-over that only the end of a lease reveals. etcd
// looks for expired leases twice a second; a change of its own leader starts every lease
// anew, and may itself take a few attempts.
func (c Config) Expiry() time.Duration { return 2*c.TTL + 5*time.Second }
