package rig_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put writes with a time-out and returns how long it took.
func put(w *rig.World, h *rig.Host, key string, patience time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.T.Context(), patience)
	defer cancel()
	begun := w.Now()
	_, err := h.Client.Put(ctx, key, "v")
	return w.Now() - begun, err
}

// written reports whether the store has the key, whatever any client was told.
func written(w *rig.World, key string) bool {
	time.Sleep(10 * time.Millisecond) // for what goes on at this instant
	return len(w.Server.Tap.Live(key, key+"\x00")) > 0
}

// What each way of a cut keeps back, and that healing delivers it.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		way  rig.Way
		done bool // the request is done although the client hears nothing
	}{{rig.Both, false}, {rig.Out, false}, {rig.In, true}} {
		t.Run(c.way.String(), func(t *testing.T) {
			rig.Run(t, func(w *rig.World) {
				h := w.Host("a")
				_, err := put(w, h, "before", time.Second)
				require.NoError(w.T, err)
				h.Cut(c.way)
				_, err = put(w, h, "during", time.Second)
				require.ErrorIs(w.T, err, context.DeadlineExceeded)
				require.Equal(w.T, c.done, written(w, "during"))
				require.Positive(w.T, h.Effects().Held)
				h.Heal()
				_, err = put(w, h, "after", time.Second)
				require.NoError(w.T, err)
				require.True(w.T, written(w, "after"))
			})
		})
	}
}

// A delay takes as long as it says, in its direction only, and ends.
func TestDelay(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		_, err := put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		h.Settle(time.Millisecond)
		took, err := put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.Equal(w.T, 2*time.Millisecond, took)
		h.Delay(rig.In, 700*time.Millisecond)
		took, err = put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.Equal(w.T, 702*time.Millisecond, took)
		require.Positive(w.T, h.Effects().Late)
		h.Heal()
		took, err = put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.Equal(w.T, 2*time.Millisecond, took)

		// What is under way stays late, and all behind it, unless it is hurried.
		h.Delay(rig.Out, time.Minute)
		_, err = put(w, h, "late", time.Second)
		require.ErrorIs(w.T, err, context.DeadlineExceeded)
		h.Heal()
		_, err = put(w, h, "k", time.Second)
		require.ErrorIs(w.T, err, context.DeadlineExceeded)
		h.Hurry()
		took, err = put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.LessOrEqual(w.T, took, 4*time.Millisecond)
	})
}

// A lost reply: done at the server, unknown at the client, once.
func TestLose(t *testing.T) {
	for _, reset := range []bool{false, true} {
		rig.Run(t, func(w *rig.World) {
			h := w.Host("a")
			var struck atomic.Int32
			h.Set(&rig.Trap{Match: isPut, After: true, Lose: true, Strike: func() {
				struck.Add(1)
				if reset {
					h.Reset()
				}
			}})
			require.False(w.T, h.Armed())
			_, err := put(w, h, "k", time.Second)
			require.Error(w.T, err)
			require.True(w.T, written(w, "k"))
			require.EqualValues(w.T, 1, struck.Load())
			_, err = put(w, h, "k2", 10*time.Second)
			require.NoError(w.T, err)
			require.EqualValues(w.T, 1, struck.Load())
		})
	}
}

// A dropped connection's last request is done late, while a new one works.
func TestDrop(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		_, err := put(w, h, "before", time.Second)
		require.NoError(w.T, err)
		h.Delay(rig.Out, 3*time.Second)
		_, err = put(w, h, "late", 10*time.Millisecond)
		require.Error(w.T, err)
		h.Drop()
		h.Heal()
		time.Sleep(10 * time.Millisecond) // for the client to see it
		_, err = put(w, h, "after", time.Second)
		require.NoError(w.T, err)
		require.False(w.T, written(w, "late"))
		time.Sleep(3 * time.Second)
		require.True(w.T, written(w, "late"))
	})
}

// A host that lost its power sends nothing and hears nothing; one that is reset
// dials again.
func TestUnplugAndReset(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		a, b := w.Host("a"), w.Host("b")
		for _, h := range []*rig.Host{a, b} {
			_, err := put(w, h, "before", time.Second)
			require.NoError(w.T, err)
		}
		a.Unplug()
		_, err := put(w, a, "dead", time.Second)
		require.Error(w.T, err)
		require.False(w.T, written(w, "dead"))
		require.Equal(w.T, 1, b.Reset())
		time.Sleep(10 * time.Millisecond)
		_, err = put(w, b, "again", 5*time.Second)
		require.NoError(w.T, err)
	})
}

// The server keeps its data over restarts, and the tap sees every change once,
// with the create revision of what was deleted, compactions notwithstanding.
func TestRestartAndTap(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		ctx, h := w.T.Context(), w.Host("a")
		_, err := put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		for range 3 {
			w.Server.Stop()
			require.False(w.T, w.Server.Up())
			require.NoError(w.T, w.Server.Start())
			_, err = put(w, h, "k", 10*time.Second)
			require.NoError(w.T, err)
			_, err = h.Client.Compact(ctx, w.Server.Rev())
			require.NoError(w.T, err)
		}
		_, err = h.Client.Get(ctx, "k", clientv3.WithRev(2))
		require.ErrorIs(w.T, err, rpctypes.ErrCompacted)
		_, err = h.Client.Delete(ctx, "k")
		require.NoError(w.T, err)
		time.Sleep(time.Second)
		changes, complete := w.Server.Tap.Changes()
		require.True(w.T, complete)
		require.Len(w.T, changes, 5)
		for i, c := range changes {
			require.EqualValues(w.T, i+2, c.Rev)
			require.EqualValues(w.T, 2, c.Create)
			require.Equal(w.T, i == 4, c.Deleted)
		}
		require.Empty(w.T, w.Server.Tap.Live("", "\xff"))
	})
}
