package demo

import (
	"errors"
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

// ErrInvalid is returned by Run for a Config that makes no demo.
var ErrInvalid = errors.New("invalid demo")

// Config says what to play. With one member nothing can be partitioned.
type Config struct {
	scenario.Config
	// Candidates is how many stand at a time.
	Candidates int
	// Heartbeat is the timeout of those that have heartbeats.
	Heartbeat time.Duration
	// Duration repeats the acts until it is over, and begins none after that. 0:
	// each act once.
	Duration time.Duration
}

// check refuses what makes no demo, and rounds the TTL as etcd would.
func (c Config) check() (Config, error) {
	switch {
	case c.Members != 1 && c.Members != 3 && c.Members != 5:
		return c, fmt.Errorf("%w: %d members; it can be 1, 3 or 5", ErrInvalid, c.Members)
	case c.Candidates < minCandidates || c.Candidates > maxCandidates:
		return c, fmt.Errorf("%w: %d candidates; it can be %d to %d", ErrInvalid, c.Candidates, minCandidates, maxCandidates)
	case c.Duration < 0:
		return c, fmt.Errorf("%w: a duration of %v", ErrInvalid, c.Duration)
	}
	if c.Heartbeat < lease.MinHeartbeat || c.Heartbeat >= c.TTL {
		return c, fmt.Errorf("%w: heartbeats of %v; they can be %v or more, and less than the TTL, %v", ErrInvalid, c.Heartbeat, lease.MinHeartbeat, c.TTL)
	}
	if err := c.Check(maxTTL); err != nil {
		return c, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return c, nil
}

// limits are what a machine that is busy with other things may still need.
func (c Config) limits() Limits { return Limits{Told: c.Told(), Expiry: c.Expiry()} }
