package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Sleep blocks for a time. If ctx ends first, it returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// History has all facts of a run, in the order in which this process received them. The zero value
// is ready to use; it is safe for concurrent use.
type History[F any] struct {
	mu      sync.Mutex
	facts   []F
	changed chan struct{} // closed and replaced by each Add
}

// Add appends a fact and wakes all callers of Await. It never blocks for long.
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

// Await blocks until cond holds for the facts so far. If ctx ends first, it returns ctx's cause;
// after the limit it returns an error that says what was awaited. cond must not keep or change its
// argument.
func (h *History[F]) Await(ctx context.Context, limit time.Duration, what string, cond func([]F) bool) error {
	overdue := fmt.Errorf("timed out after %v waiting until %s", limit, what)
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

// The members' timeouts: long enough for a busy machine, short enough that no fault of one member
// makes a lease of two seconds expire (TTL >= 4 election timeouts).
const (
	Heartbeat    = 50 * time.Millisecond
	Election     = 500 * time.Millisecond
	startTimeout = 30 * time.Second
)

// MinTTL is the shortest TTL that is long enough on a busy machine, where CPU time is scarce.
const MinTTL = 2 * time.Second

// ErrInvalid is returned for an invalid Config; nothing was started.
var ErrInvalid = errors.New("invalid run")

// ErrViolated is returned by Run when a check failed or the plan was not completed; the summary
// says which.
var ErrViolated = errors.New("a check failed, or the plan was not completed")

// Config configures the run of a plan. All fields but JSON and Style are required.
type Config struct {
	// Members is 1, 3 or 5.
	Members int
	// TTL is the TTL of the participants' leases; etcd rounds it up to seconds.
	TTL time.Duration
	// Executable is the eldest command.
	Executable string
	// Out is where facts are written: as text, or as JSON lines.
	Out   io.Writer
	JSON  bool
	Style story.Style
}

// Check refuses an invalid TTL, and rounds the TTL as etcd does.
func (c *Config) Check(maxTTL time.Duration) error {
	if c.TTL < MinTTL || c.TTL > maxTTL {
		return fmt.Errorf("%w: --ttl %v: want %v to %v", ErrInvalid, c.TTL, MinTTL, maxTTL)
	}
	c.TTL = (c.TTL + time.Second - 1).Truncate(time.Second)
	return nil
}

// Told is the longest time, on a busy machine, for a hand-over of which etcd is notified. A
// hand-over that waits for a lease takes the time that the lease has left, which is most of a TTL:
// one that takes longer than half a TTL may have waited.
func (c Config) Told() time.Duration { return c.TTL / 2 }

// Expiry is the longest time for a hand-over that waits for a lease to expire. etcd checks for
// expired leases twice a second; a change of its own leader restarts every lease, and may itself
// take a few attempts.
func (c Config) Expiry() time.Duration { return 2*c.TTL + 5*time.Second }
