package sandbox

import (
	"errors"
	"fmt"
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
	case !slices.Contains([]int{1, 3, 5}, c.Members):
		return fmt.Errorf("%w: --members %d: want 1, 3 or 5", ErrInvalid, c.Members)
	case c.TTL < MinTTL || c.TTL > MaxTTL || c.TTL%time.Second != 0:
		return fmt.Errorf("%w: --ttl %v: want whole seconds, %v to %v", ErrInvalid, c.TTL, MinTTL, MaxTTL)
	case c.Election == "":
		return nil
	}
	if err := keys.Check(c.Election); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
