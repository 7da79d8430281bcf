package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/lease"
)

// The bound on a hand-over of which etcd is told is shorter than what a lease has left in the
// worst case: its renewal was due, and the first attempt failed.
//
// Fails when the bound no longer tells a hand-over from the end of a lease.
func TestToldIsShorterThanWhatALeaseHasLeft(t *testing.T) {
	for ttl := scenario.MinTTL; ttl <= maxTTL; ttl += time.Second {
		r := lease.DefaultRenewal(ttl)
		left := ttl - r.Every - r.Timeout
		require.Less(t, Config{Config: scenario.Config{TTL: ttl}}.limits().Told, left, "a TTL of %v", ttl)
	}
}
