package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// What the command starts from, and the limits of a play.
const (
	DefaultTTL    = 3 * time.Second
	DefaultRounds = 1

	maxTTL    = time.Minute
	maxRounds = 1000
)

// nodes is how many there are, and members: each node has its own.
const nodes = 3

// ErrInvalid is returned by Run for a Config that makes no play.
var ErrInvalid = errors.New("invalid play")

// Config says what to play. Members are as many as there are nodes.
type Config struct {
	scenario.Config
	// Rounds is how often the acts are played.
	Rounds int
	// Seed chooses what the client asks whom, and the order of the acts after the
	// first round. What the machine does meanwhile it does not repeat.
	Seed uint64
}

// check refuses what makes no play, and rounds the TTL as etcd would.
func (c Config) check() (Config, error) {
	if err := c.Check(maxTTL); err != nil {
		return c, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.Rounds < 1 || c.Rounds > maxRounds {
		return c, fmt.Errorf("%w: %d rounds; it can be 1 to %d", ErrInvalid, c.Rounds, maxRounds)
	}
	c.Members = nodes
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
		Told: c.Told(), Expiry: c.Expiry(),
		// A renewal may get through for as long as its member believes in the leader
		// of etcd that it had.
		Certain: c.TTL + scenario.Election,
	}
}

// patience is how long requests of the client wait for their answer: some give up
// soon, some outlast a change of leader.
func (c Config) patience() []time.Duration {
	return []time.Duration{500 * time.Millisecond, c.TTL / 2, 2 * c.TTL}
}
