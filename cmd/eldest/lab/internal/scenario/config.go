package scenario

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

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
