package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/keys"
)

// ErrInvalid is returned by Open for an invalid Config; nothing was started.
var ErrInvalid = errors.New("invalid sandbox")

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

// etcd's timeouts. No fault of one member may make a lease expire, and a new leader of etcd restarts
// all leases: so they are short, and long enough for a machine on which all of this shares two CPUs.
const (
	heartbeat       = 50 * time.Millisecond
	electionTimeout = 500 * time.Millisecond
)

// Config configures a sandbox. Participant is required.
type Config struct {
	// Members is 1, 3 or 5; 0 means DefaultMembers.
	Members int
	// TTL is the TTL of the participants' leases, in whole seconds; 0 means DefaultTTL.
	TTL time.Duration
	// Election is the name of the election; "" means DefaultElection.
	Election string
	// Start are the participants at the beginning; nil means three of Eldest.
	Start []feed.Kind
	// Version is the version of the command, for Info.
	Version string

	// Participant makes the command of a participant, whose process calls participant.Run. Its main
	// must call keeper.Serve with connect.Kept.
	Participant func() *exec.Cmd
	// Member is the command line of a member of etcd, to which the member's flags are appended; nil
	// means etcdtest's.
	Member []string
}

func (c Config) withDefaults() Config {
	if c.Members == 0 {
		c.Members = DefaultMembers
	}
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.Election == "" {
		c.Election = DefaultElection
	}
	if c.Start == nil {
		c.Start = []feed.Kind{feed.Eldest, feed.Eldest, feed.Eldest}
	}
	return c
}

// Check returns the error that Open would return before it starts anything. The error wraps
// ErrInvalid.
func (c Config) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	c = c.withDefaults()
	switch {
	case c.Participant == nil:
		return bad("no command for participants")
	case !slices.Contains([]int{1, 3, 5}, c.Members):
		return bad("%d members: want 1, 3 or 5", c.Members)
	case c.TTL < MinTTL || c.TTL > MaxTTL || c.TTL%time.Second != 0:
		return bad("a TTL of %v: want whole seconds, %v to %v", c.TTL, MinTTL, MaxTTL)
	case len(c.Start) > MostParticipants:
		return bad("%d participants: want %d at most", len(c.Start), MostParticipants)
	}
	for _, kind := range c.Start {
		if !slices.Contains(feed.Kinds, kind) {
			return bad("unknown kind of participant %q", kind)
		}
	}
	if err := keys.Check(c.Election); err != nil {
		return bad("%w", err)
	}
	return nil
}
