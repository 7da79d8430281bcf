//go:build linux

package main

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The same signal once more within a moment means it once, as timeout(1) does, which signals
// a process and its group. Another one, or the same one later, is the second.
func TestRunTakesTheSameSignalTwiceForOne(t *testing.T) {
	for name, c := range map[string]struct {
		sig   syscall.Signal
		after time.Duration
		again bool
	}{
		"at once":      {syscall.SIGTERM, 0, false},
		"just in time": {syscall.SIGTERM, repeated - 1, false},
		"later":        {syscall.SIGTERM, repeated, true},
		"another one":  {syscall.SIGINT, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &runSignals{forward: make(chan syscall.Signal, 1), again: make(chan struct{}, 1)}
				s.program.Store(true)
				ending, end := context.WithCancelCause(t.Context())
				defer end(nil)
				s.sort(ending, syscall.SIGTERM, end)
				require.Error(t, ending.Err())
				require.Equal(t, syscall.SIGTERM, signalOf(ending))
				time.Sleep(c.after)
				s.sort(ending, c.sig, end)
				require.Equal(t, c.again, len(s.again) == 1)
				require.Empty(t, s.forward)
			})
		})
	}
}
