package liveness_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/liveness"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

// In virtual time: checks are called at the interval, one that hangs is ended when the next one is
// due, and there is none after the end.
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

// Only a successful check beats.
func TestOnlySuccessBeats(t *testing.T) {
	pulse := lease.NewLiveness(time.Nanosecond) // expired right after each beat
	ctx, cancel := context.WithCancel(t.Context())
	age := func() string { return pulse.Err().Error() }
	time.Sleep(2 * time.Millisecond) // the error has the age in milliseconds
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
