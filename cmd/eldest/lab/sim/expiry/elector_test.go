package expiry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

const electionName = "election"

// config returns the configuration of a node on a host.
func config(host *rig.Host, ttl time.Duration) elector.Config {
	return elector.Config{
		Election: electionName, NodeID: host.Name, Address: host.Name + ":1", Source: elector.Always(elector.Client(host.Client)),
		Session: lease.Options{TTL: ttl, Clock: lease.Monotonic()},
	}
}

// queued returns how many keys are in the queue.
func queued(w *rig.World, host *rig.Host) int {
	w.T.Helper()
	queue, err := observe.Queue(w.T.Context(), host.Client, nil, electionName)
	require.NoError(w.T, err)
	return len(queue)
}

// Requirement 42: if a lead function ignores the end of Run, its key is kept for Config.Drain, with the
// lease renewed; then the lease is left to its deadline and Run returns before the function does.
//
// Broken by a Run that does not wait, and by a lease that is not renewed meanwhile or that is
// renewed for ever.
func TestRequirement42StuckAtTheEndOfRun(t *testing.T) {
	const ttl, drain = 4 * time.Second, 30 * time.Second // longer than many TTLs
	rig.Run(t, func(w *rig.World) {
		host, admin := w.Host("n"), w.Host("admin")
		var log bytes.Buffer
		cfg := config(host, ttl)
		cfg.Drain, cfg.Logger = drain, slog.New(slog.NewTextHandler(&log, nil))
		e, err := elector.New(cfg)
		require.NoError(w.T, err)
		ctx, stop := context.WithCancel(w.T.Context())
		began, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		defer close(release)
		go func() {
			done <- e.Run(ctx, func(context.Context, *elector.Leadership) error {
				close(began)
				<-release
				return nil
			})
		}()
		take(w, began, "the win")
		stopped := w.Now()
		stop()
		synctest.Wait()
		require.Equal(w.T, elector.Unknown, e.Status().Role(), "unknown before the function is waited for")
		for w.Now()-stopped < drain-time.Second {
			require.Equal(w.T, 1, queued(w, admin), "the key is kept, longer than one TTL")
			require.Empty(w.T, done, "the function is waited for")
			time.Sleep(100 * time.Millisecond)
		}
		err = take(w, done, "the end of Run")
		require.ErrorIs(w.T, err, eldest.ErrStuck)
		require.ErrorIs(w.T, err, context.Canceled)
		require.GreaterOrEqual(w.T, w.Now()-stopped, drain)
		require.Less(w.T, w.Now()-stopped, drain+time.Second)
		require.Equal(w.T, 1, queued(w, admin), "the key lives as long as its lease")
		time.Sleep(ttl + time.Second)
		require.Zero(w.T, queued(w, admin), "the lease was abandoned, not renewed")
		synctest.Wait()
		require.Contains(w.T, log.String(), "lead function ignores its context")
		require.Contains(w.T, log.String(), "lease left to expire")
	})
}

// Requirement 36: the pauses before the next candidacy grow with each lead function that returns,
// and start from the beginning after a tenure of Config.Stable.
//
// Broken by an attempt count that is never reset, and by one that is reset too soon.
func TestRequirement36Backoff(t *testing.T) {
	const stable = 30 * time.Second
	rig.Run(t, func(w *rig.World) {
		ctx, cancel := context.WithCancel(w.T.Context())
		var attempts []int
		cfg := config(w.Host("n"), 10*time.Second)
		cfg.Stable = stable
		cfg.Backoff = func(attempt int) time.Duration {
			attempts = append(attempts, attempt)
			if len(attempts) == 6 {
				cancel()
			}
			return time.Millisecond
		}
		e, err := elector.New(cfg)
		require.NoError(w.T, err)
		calls, running := 0, false
		done := make(chan error, 1)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, _ *elector.Leadership) error {
				if running {
					w.T.Error("G7")
				}
				running = true
				defer func() { running = false }()
				calls++
				switch calls {
				case 2:
					time.Sleep(stable - time.Second)
				case 4:
					time.Sleep(stable + time.Second)
				}
				return errors.New("enough")
			})
		}()
		require.ErrorIs(w.T, take(w, done, "the end of Run"), context.Canceled)
		require.Equal(w.T, []int{0, 1, 2, 0, 1, 2}, attempts)
		require.Equal(w.T, 6, calls)
	})
}

// If a codec of the user panics, Run ends with its panic, and the session ends with Run: the lease
// is not renewed any more.
//
// Broken by a round that does not end its session then.
func TestPanickingCodec(t *testing.T) {
	const ttl = 2 * time.Second
	rig.Run(t, func(w *rig.World) {
		host := w.Host("n")
		codec := &panicking{}
		cfg := config(host, ttl)
		cfg.Codec = codec
		e, err := elector.New(cfg)
		require.NoError(w.T, err)
		codec.armed = true
		require.Panics(w.T, func() { _ = e.Run(w.T.Context(), func(context.Context, *elector.Leadership) error { return nil }) })
		require.ErrorIs(w.T, e.Status().Reason(), eldest.ErrClosed)
		time.Sleep(2 * ttl)
		left, err := host.Client.Leases(w.T.Context())
		require.NoError(w.T, err)
		require.Empty(w.T, left.Leases, "a lease is renewed by nobody's session")
	})
}

type panicking struct {
	identity.Protobuf
	armed bool
}

func (c *panicking) Encode(id identity.Identity) ([]byte, error) {
	if c.armed {
		panic("a bug")
	}
	return c.Protobuf.Encode(id)
}
