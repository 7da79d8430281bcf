package liveness_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/liveness"
	"github.com/eldest-io/eldest/lease"
)

// In virtual time: checks come in a rhythm, one that hangs is ended when the next one is
// due, and after the end there is none.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var at []time.Duration
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			liveness.While(ctx, lease.NewLiveness(time.Hour), time.Second, func(ctx context.Context) error {
				at = append(at, time.Since(start))
				switch len(at) {
				case 2:
					return errors.New("failed")
				case 3:
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
		}()
		time.Sleep(4500 * time.Millisecond)
		cancel()
		<-done
		require.Equal(t, []time.Duration{0, 1 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, at)
	})
}

// Only a check that succeeded beats.
func TestOnlySuccessBeats(t *testing.T) {
	pulse := lease.NewLiveness(time.Nanosecond) // silent as soon as it has beaten
	ctx, cancel := context.WithCancel(t.Context())
	age := func() string { return pulse.Err().Error() }
	time.Sleep(2 * time.Millisecond) // the age is told in milliseconds
	before := age()
	checks := 0
	liveness.While(ctx, pulse, time.Millisecond, func(context.Context) error {
		if checks++; checks == 20 {
			cancel()
		}
		return errors.New("failed")
	})
	require.NotEqual(t, before, age(), "it has grown")
	require.Equal(t, 20, checks)
}
