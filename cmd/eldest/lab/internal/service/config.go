package service

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// What the command starts from, and the limits of a play.
const (
	DefaultTTL    = 3 * time.Second
	DefaultRounds = 1

	// On a busy machine a shorter lease would be lost for want of a processor.
	minTTL    = 2 * time.Second
	maxTTL    = time.Minute
	maxRounds = 1000
)

// nodes is how many there are, and members: each node has its own.
const nodes = 3

// ErrInvalid is returned by Run for a Config that makes no play.
var ErrInvalid = errors.New("invalid play")

// ErrViolated is returned by Run when a check failed or an act did not come to its
// end; the summary has said which.
var ErrViolated = errors.New("not everything held")

// Config says what to play. TTL, Rounds, Executable and Out are required.
type Config struct {
	// TTL is the nodes' time to live; etcd rounds it up to seconds.
	TTL time.Duration
	// Rounds is how often the acts are played.
	Rounds int
	// Seed chooses what the client asks whom, and the order of the acts after the
	// first round. What the machine does meanwhile it does not repeat.
	Seed uint64
	// Executable is the eldest command.
	Executable string
	// Out is where the story goes: text, or facts as JSON lines.
	Out   io.Writer
	JSON  bool
	Style story.Style
}

// check refuses what makes no play, and rounds the TTL as etcd would.
func (c Config) check() (Config, error) {
	switch {
	case c.TTL < minTTL || c.TTL > maxTTL:
		return c, fmt.Errorf("%w: a TTL of %v; it can be %v to %v", ErrInvalid, c.TTL, minTTL, maxTTL)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return c, fmt.Errorf("%w: %d rounds; it can be 1 to %d", ErrInvalid, c.Rounds, maxRounds)
	}
	c.TTL = (c.TTL + time.Second - 1).Truncate(time.Second)
	return c, nil
}

// Limits are the longest times that things may take on a machine that is busy with
// other things.
type Limits struct {
	// Told is for a hand-over of which etcd is told: nobody waits for a lease.
	Told time.Duration
	// Expiry is for one that only the end of a lease reveals.
	Expiry time.Duration
	// Certain is how long a node that is cut off from the other members may count on
	// its lease.
	Certain time.Duration
}

func (c Config) limits() Limits {
	return Limits{
		// A hand-over that waited for a lease would take what the lease has left, which is
		// most of a TTL. So what takes longer than half of one may have waited.
		Told: c.TTL / 2,
		// etcd looks for expired leases twice a second; a change of its own leader
		// starts every lease anew, and may itself take a few attempts.
		Expiry: 2*c.TTL + 5*time.Second,
		// A renewal may get through for as long as its member believes in the leader
		// of etcd that it had.
		Certain: c.TTL + electionTime,
	}
}

// patience is how long requests of the client wait for their answer: some give up
// soon, some outlast a change of leader.
func (c Config) patience() []time.Duration {
	return []time.Duration{500 * time.Millisecond, c.TTL / 2, 2 * c.TTL}
}
