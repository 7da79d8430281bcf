package demo

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// What the command starts from, and the limits of a demo.
const (
	DefaultMembers    = 3
	DefaultCandidates = 5
	DefaultTTL        = 5 * time.Second

	// With fewer there is no waiter behind a waiter.
	minCandidates = 3
	// Each is a process.
	maxCandidates = 100
	// On a busy machine a shorter lease would be lost for want of a processor.
	minTTL = 2 * time.Second
	maxTTL = 5 * time.Minute
)

// ErrInvalid is returned by Run for a Config that makes no demo.
var ErrInvalid = errors.New("invalid demo")

// ErrViolated is returned by Run when a check failed or an act did not come to its
// end; the summary has said which.
var ErrViolated = errors.New("not everything held")

// Config says what to play. All but Duration, JSON and Style is required.
type Config struct {
	// Members is 1, 3 or 5; with 1 nothing can be partitioned.
	Members int
	// Candidates is how many stand at a time.
	Candidates int
	// TTL is the candidates' time to live; etcd rounds it up to seconds.
	TTL time.Duration
	// Duration repeats the acts until it is over, and begins none after that. 0:
	// each act once.
	Duration time.Duration
	// Executable is the eldest command.
	Executable string
	// Out is where the story goes: text, or facts as JSON lines.
	Out   io.Writer
	JSON  bool
	Style story.Style
}

// check refuses what makes no demo, and rounds the TTL as etcd would.
func (c Config) check() (Config, error) {
	switch {
	case c.Members != 1 && c.Members != 3 && c.Members != 5:
		return c, fmt.Errorf("%w: %d members; it can be 1, 3 or 5", ErrInvalid, c.Members)
	case c.Candidates < minCandidates || c.Candidates > maxCandidates:
		return c, fmt.Errorf("%w: %d candidates; it can be %d to %d", ErrInvalid, c.Candidates, minCandidates, maxCandidates)
	case c.TTL < minTTL || c.TTL > maxTTL:
		return c, fmt.Errorf("%w: a TTL of %v; it can be %v to %v", ErrInvalid, c.TTL, minTTL, maxTTL)
	case c.Duration < 0:
		return c, fmt.Errorf("%w: a duration of %v", ErrInvalid, c.Duration)
	}
	// etcd counts leases in seconds.
	c.TTL = (c.TTL + time.Second - 1).Truncate(time.Second)
	return c, nil
}

// limits are what a machine that is busy with other things may still need.
func (c Config) limits() Limits {
	return Limits{
		// A hand-over that waited for a lease would take most of a TTL.
		Told: c.TTL / 2,
		// etcd looks for expired leases twice a second; a change of its own leader
		// starts every lease anew, and may itself take a few attempts.
		Expiry: 2*c.TTL + 5*time.Second,
	}
}
