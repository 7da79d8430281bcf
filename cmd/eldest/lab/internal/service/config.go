package service

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// What the command starts from, and the limits of a run.
const (
	DefaultTTL    = 3 * time.Second
	DefaultRounds = 1

	maxTTL    = time.Minute
	maxRounds = 1000
)

// nodes is how many there are, and members: each node has its own.
const nodes = 3

// Config says what to show. Members are as many as there are nodes.
type Config struct {
	scenario.Config
	// Rounds is how often the steps are carried out.
	Rounds int
	// Seed chooses what the client asks for and where, and the order of the steps after the
	// first round. What the machine does meanwhile it does not repeat.
	Seed uint64
}

// check refuses what makes no run, and rounds the TTL as etcd does.
func (c *Config) check() error {
	if err := c.Check(maxTTL); err != nil {
		return err
	}
	if c.Rounds < 1 || c.Rounds > maxRounds {
		return fmt.Errorf("%w: %d rounds; it can be 1 to %d", scenario.ErrInvalid, c.Rounds, maxRounds)
	}
	c.Members = nodes
	return nil
}

// certain is how long a node that is partitioned may count on its lease. A renewal may get
// through for as long as its member believes in the leader of etcd that it had.
func (c Config) certain() time.Duration { return c.TTL + scenario.Election }
