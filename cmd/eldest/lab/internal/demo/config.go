package demo

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/lease"
)

// What the command starts from, and the limits of a demo.
const (
	DefaultMembers    = 3
	DefaultCandidates = 5
	DefaultTTL        = 5 * time.Second
	DefaultHeartbeat  = time.Second

	// With fewer there is no waiter behind a waiter.
	minCandidates = 3
	// Each is a process.
	maxCandidates = 100
	maxTTL        = 5 * time.Minute
)

// Config says what to show. With one member nothing can be partitioned.
type Config struct {
	scenario.Config
	// Candidates is how many there are at a time.
	Candidates int
	// Heartbeat is the timeout of those that have heartbeats.
	Heartbeat time.Duration
	// Duration repeats the steps until it is over, and begins none after that. 0:
	// each step once.
	Duration time.Duration
}

// check refuses what makes no demo, and rounds the TTL as etcd does.
func (c *Config) check() error {
	switch {
	case c.Members != 1 && c.Members != 3 && c.Members != 5:
		return fmt.Errorf("%w: %d members; it can be 1, 3 or 5", scenario.ErrInvalid, c.Members)
	case c.Candidates < minCandidates || c.Candidates > maxCandidates:
		return fmt.Errorf("%w: %d candidates; it can be %d to %d", scenario.ErrInvalid, c.Candidates, minCandidates, maxCandidates)
	case c.Duration < 0:
		return fmt.Errorf("%w: a duration of %v", scenario.ErrInvalid, c.Duration)
	case c.Heartbeat < lease.MinHeartbeat || c.Heartbeat >= c.TTL:
		return fmt.Errorf("%w: heartbeats of %v; they can be %v or more, and less than the TTL, %v", scenario.ErrInvalid, c.Heartbeat, lease.MinHeartbeat, c.TTL)
	}
	return c.Check(maxTTL)
}
