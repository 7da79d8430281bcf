package electortest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/electortest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// untilOver leads until its context ends.
func untilOver(ctx context.Context, _ *elector.Leadership) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// inBoth runs a test in real and in virtual time.
func inBoth(t *testing.T, test func(t *testing.T)) {
	t.Run("real time", test)
	t.Run("virtual time", func(t *testing.T) { synctest.Test(t, test) })
}

// The function is called once for each Win, with a token that grows, and not before; its context
// ends with the cause of the loss; then the guard refuses, and the other node leads (G2, G4).
func TestWinAndLose(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		e := electortest.New(t)
		calls := 0
		e.Start(func(ctx context.Context, l *elector.Leadership) error {
			calls++
			return untilOver(ctx, l)
		})
		require.Zero(t, calls)
		var last eldest.Token
		for _, cause := range []error{eldest.ErrDeposed, eldest.ErrSessionLost, eldest.ErrDeposed, eldest.ErrSessionLost} {
			l := e.Win()
			require.Greater(t, l.Token(), last)
			last = l.Token()
			_, err := l.KV().Put(t.Context(), "state", "mine")
			require.NoError(t, err)
			queue, err := observe.Queue(t.Context(), e.Client(), nil, l.Election())
			require.NoError(t, err)
			require.Equal(t, l.Key(), queue[0].Key)

			e.Lose(cause)
			require.ErrorIs(t, l.Err(), cause)
			require.ErrorIs(t, e.Wait(), cause)
			_, err = l.KV().Put(t.Context(), "state", "late")
			require.ErrorIs(t, err, eldest.ErrNotLeading)
			require.Eventually(t, func() bool {
				queue, err := observe.Queue(t.Context(), e.Client(), nil, l.Election())
				return err == nil && queue[0].Key != l.Key()
			}, time.Minute, time.Millisecond, "the other node leads")
			guard := l.Guard()
			guard.Alive = nil // without what this process knows
			_, err = guard.KV(e.Client()).Put(t.Context(), "state", "late")
			require.ErrorIs(t, err, eldest.ErrDeposed)
			state, err := e.Client().Get(t.Context(), "state")
			require.NoError(t, err)
			require.Equal(t, "mine", string(state.Kvs[0].Value))
		}
		require.Equal(t, 4, calls)
	})
}

// A function that returns gives leadership up: Wait returns its error, and the next call needs the
// next Win.
func TestReturn(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		e := electortest.New(t)
		broken := errors.New("broken")
		calls := make(chan eldest.Token, 10)
		e.Start(func(_ context.Context, l *elector.Leadership) error {
			calls <- l.Token()
			return broken
		})
		for range 3 {
			l := e.Win()
			require.Equal(t, l.Token(), <-calls)
			require.ErrorIs(t, e.Wait(), broken)
		}
		require.Empty(t, calls)
	})
}

// Time is stepped: the deadline of the tenure moves only with Advance, a short interruption does
// not end it, and a long one ends it with eldest.ErrSessionLost (G3).
func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		e.Start(untilOver, elector.WithTTL(10*time.Second))
		l := e.Win()
		for range 20 {
			e.Advance(10 * time.Second)
			require.True(t, l.Holds(6*time.Second), "it is renewed every 2.5 s")
		}
		e.Disconnect()
		e.Advance(5 * time.Second)
		require.True(t, l.Holds(time.Second))
		require.False(t, l.Holds(5*time.Second), "renewed while etcd does not answer the node")
		e.Reconnect()
		e.Advance(5 * time.Second)
		require.True(t, l.Holds(6*time.Second))

		e.Disconnect()
		wrote := make(chan error)
		go func() {
			_, err := l.KV().Put(l.Context(), "state", "lost")
			wrote <- err
		}()
		e.Advance(9 * time.Second)
		require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
		require.ErrorIs(t, e.Wait(), eldest.ErrSessionLost)
		require.Error(t, <-wrote)
		e.Reconnect()
		require.Greater(t, e.Win().Token(), l.Token())
	})
}

// A suspended tenure continues with the same token.
func TestSuspend(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		e := electortest.New(t)
		calls := make(chan *elector.Leadership, 10)
		e.Start(func(ctx context.Context, l *elector.Leadership) error {
			calls <- l
			return untilOver(ctx, l)
		}, elector.WithHeartbeat(2*time.Second), elector.WithTTL(time.Minute)) // longer than a busy machine pauses
		l := e.Win()
		require.Same(t, l, <-calls)
		e.Suspend()
		require.ErrorIs(t, e.Wait(), eldest.ErrSuspended)
		require.Empty(t, calls)
		e.Reconnect()
		next := <-calls
		require.Equal(t, l.Token(), next.Token())
		require.NoError(t, next.Err())
		e.Lose(eldest.ErrDeposed)
		require.ErrorIs(t, e.Wait(), eldest.ErrDeposed)
		require.Greater(t, e.Win().Token(), l.Token())
	})
}

// A suspension that is longer than the lease is a loss: Reconnect does not wait for a call.
func TestSuspendedForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		e.Start(untilOver, elector.WithHeartbeat(lease.MinHeartbeat), elector.WithTTL(10*time.Second))
		l := e.Win()
		e.Suspend()
		e.Advance(time.Minute)
		e.Reconnect()
		require.ErrorIs(t, e.Wait(), eldest.ErrSuspended)
		require.Greater(t, e.Win().Token(), l.Token())
	})
}

// Stop ends the function as the end of the program does; the node can be started again.
func TestStop(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		e := electortest.New(t)
		for range 2 {
			var result error
			e.Start(func(ctx context.Context, l *elector.Leadership) error {
				result = untilOver(ctx, l)
				return nil
			})
			l := e.Win()
			e.Stop()
			require.ErrorIs(t, result, context.Canceled)
			require.ErrorIs(t, l.Err(), eldest.ErrClosed)
			queue, err := observe.Queue(t.Context(), e.Client(), nil, l.Election())
			require.NoError(t, err)
			require.Len(t, queue, 1, "the other node")
		}
	})
}

// Timers of the function follow Advance, and its watches receive what the test writes.
func TestTimersAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		ticks, orders := 0, 0
		e.Start(func(ctx context.Context, _ *elector.Leadership) error {
			watch := e.Client().Watch(ctx, "orders/", clientv3.WithPrefix())
			tick := time.NewTicker(time.Minute)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
					ticks++
				case resp := <-watch:
					orders += len(resp.Events)
				}
			}
		})
		e.Win()
		e.Advance(time.Hour)
		require.Equal(t, 60, ticks)
		for _, key := range []string{"orders/1", "orders/2", "other"} {
			_, err := e.Client().Put(t.Context(), key, "")
			require.NoError(t, err)
		}
		e.Advance(0)
		require.Equal(t, 2, orders)
	})
}

// Whole nodes run in memory: when the leader ends the next one leads.
func TestWholeNodes(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		client := electortest.New(t).Client()
		won, ended := make(chan string), make(chan error)
		run := func(id string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				ended <- elector.Run(ctx, client, "jobs", func(ctx context.Context, _ *elector.Leadership) error {
					won <- id
					<-ctx.Done()
					return nil
				}, elector.WithNodeID(id), func(c *elector.Config) { c.Session.Clock = lease.Monotonic() })
			}()
			return func() { cancel(); require.NoError(t, <-ended) }
		}
		stopAnna := run("anna")
		require.Equal(t, "anna", <-won)
		stopBert := run("bert")
		require.Eventually(t, func() bool {
			queue, err := observe.Queue(t.Context(), client, nil, "jobs")
			return err == nil && len(queue) == 2
		}, time.Minute, time.Millisecond)
		stopAnna()
		require.Equal(t, "bert", <-won)
		stopBert()
	})
}

// A guarded watch receives what the test writes, and ends with the tenure.
func TestGuardedWatch(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		e := electortest.New(t)
		values := make(chan string, 100)
		e.Start(func(_ context.Context, l *elector.Leadership) error {
			for resp := range l.Watcher().Watch(context.Background(), "orders") {
				for _, event := range resp.Events {
					values <- string(event.Kv.Value)
				}
				if resp.Err() != nil {
					return resp.Err()
				}
			}
			return nil
		})
		for _, cause := range []error{eldest.ErrDeposed, eldest.ErrSessionLost} {
			e.Win()
			require.Eventually(t, func() bool {
				_, err := e.Client().Put(t.Context(), "orders", "one")
				require.NoError(t, err)
				select {
				case value := <-values:
					return value == "one"
				case <-time.After(time.Second):
					return false // the watch had not been created yet
				}
			}, time.Minute, time.Millisecond)
			e.Lose(cause)
			require.ErrorIs(t, e.Wait(), cause)
		}
	})
}

// Two elections of one process are as separate as two etcds are: neither node takes the other one's
// key for a key of its own session.
func TestTwoElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			var opened atomic.Int32
			e := electortest.New(t)
			e.Start(untilOver, func(cfg *elector.Config) {
				cfg.Session.Hooks.Opened = func(lease.OpenedEvent) { opened.Add(1) }
			})
			e.Win()
			require.EqualValues(t, 1, opened.Load(), "the first round failed")
		}
	})
}

// The node can be started again in an election in which it was before.
func TestElectionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		for _, name := range []string{"one", "two", "one", "two"} {
			e.Start(untilOver, func(cfg *elector.Config) { cfg.Election = name })
			require.Equal(t, name, e.Win().Election())
			e.Stop()
		}
	})
}

// A node that was disconnected until its session was lost, and not until its lease expired, wins with
// its new key.
func TestReconnectBeforeTheLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		e.Start(untilOver, elector.WithTTL(10*time.Second))
		e.Disconnect()
		e.Advance(9500 * time.Millisecond)
		e.Reconnect()
		require.NoError(t, e.Win().Err())
	})
}
