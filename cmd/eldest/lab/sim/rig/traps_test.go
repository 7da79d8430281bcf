package rig_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

func isPut(method string, _ any) bool { return strings.HasSuffix(method, "/Put") }

// A trap before a request keeps it from being done, one behind its reply keeps the
// reply from being seen; each strikes once.
func TestTrap(t *testing.T) {
	for _, after := range []bool{false, true} {
		rig.Run(t, func(w *rig.World) {
			h, strikes := w.Host("a"), 0
			h.Set(&rig.Trap{Match: isPut, After: after, Strike: func() {
				strikes++
				time.Sleep(time.Second)
				require.Equal(w.T, after, written(w, "k"))
			}})
			require.True(w.T, h.Armed())
			took, err := put(w, h, "k", 10*time.Second)
			require.NoError(w.T, err)
			require.GreaterOrEqual(w.T, took, time.Second)
			require.False(w.T, h.Armed())
			_, err = put(w, h, "k", time.Second)
			require.NoError(w.T, err)
			require.Equal(w.T, 1, strikes)
		})
	}
}

// A reply that a trap held is handed over even when its request's context has ended.
func TestTrappedReplyIsStillDelivered(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		h.Set(&rig.Trap{Match: isPut, After: true, Strike: func() { time.Sleep(3 * time.Second) }})
		took, err := put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.Equal(w.T, 3*time.Second, took)
	})
}

// A frozen host sends nothing and takes nothing in, whatever heals; then everything
// is there at once.
func TestFreeze(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		_, err := put(w, h, "before", time.Second)
		require.NoError(w.T, err)
		h.Freeze()
		h.Heal()
		done := make(chan time.Duration)
		go func() {
			took, err := put(w, h, "k", time.Minute)
			require.NoError(w.T, err)
			done <- took
		}()
		time.Sleep(5 * time.Second)
		require.False(w.T, written(w, "k"))
		require.Positive(w.T, h.Effects().Held)
		h.Thaw()
		require.InDelta(w.T, 5*time.Second, <-done, float64(20*time.Millisecond))
	})
}

// A starving host takes longer, a healed one does not.
func TestStarve(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		h.Starve(time.Second, rand.New(rand.NewPCG(1, 2)))
		took, err := put(w, h, "k", time.Minute)
		require.NoError(w.T, err)
		require.Positive(w.T, took)
		require.Equal(w.T, 2, h.Effects().Starved)
		h.Starve(0, nil)
		took, err = put(w, h, "k", time.Minute)
		require.NoError(w.T, err)
		require.Zero(w.T, took)
	})
}

// Lost packets come late and in order, and none is missing.
func TestLossy(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		h.Lossy(rig.Both, 0.3, rand.New(rand.NewPCG(1, 2)))
		begun := w.Now()
		for range 100 {
			_, err := put(w, h, "k", time.Minute)
			require.NoError(w.T, err)
		}
		require.Greater(w.T, h.Effects().Resent, 20)
		require.GreaterOrEqual(w.T, w.Now()-begun, 20*200*time.Millisecond)
		h.Heal()
		// What got lost before, an acknowledgement of the connection perhaps, still comes
		// late, and what is sent now waits behind it.
		time.Sleep(4 * time.Second)
		took, err := put(w, h, "k", time.Minute)
		require.NoError(w.T, err)
		require.Zero(w.T, took)
	})
}

// While the alarm is up, nothing can be put, deletions go on; the refusals count.
func TestFull(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := w.Host("a")
		_, err := put(w, h, "k", time.Second)
		require.NoError(w.T, err)
		require.NoError(w.T, w.Server.Full(true))
		_, err = put(w, h, "k2", time.Second)
		require.ErrorIs(w.T, err, rpctypes.ErrNoSpace)
		_, err = h.Client.Delete(w.T.Context(), "k")
		require.NoError(w.T, err)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.NoSpace])
		require.NoError(w.T, w.Server.Full(false))
		_, err = put(w, h, "k2", time.Second)
		require.NoError(w.T, err)
	})
}

// A watch that was cut off while a compaction overtook it is told so.
func TestOverrunWatchCounts(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h, admin := w.Host("a"), w.Host(rig.Admin)
		events := h.Client.Watch(w.T.Context(), "k", clientv3.WithCreatedNotify())
		require.True(w.T, (<-events).Created)
		h.Cut(rig.Both)
		for range 3 {
			_, err := put(w, admin, "other", time.Second)
			require.NoError(w.T, err)
		}
		_, err := admin.Client.Compact(w.T.Context(), w.Server.Rev())
		require.NoError(w.T, err)
		h.Reset()
		h.Heal()
		require.NotZero(w.T, (<-events).CompactRevision)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.Compacted])
	})
}

// With authentication, a token that nobody used for its time is refused, and the
// client gets another; keys outside the ranges are nobody's but the administrator's.
func TestTokens(t *testing.T) {
	rig.RunWith(t, rig.Options{Tokens: 2 * time.Second, Ranges: [][2]string{{"mine/", "mine0"}}}, func(w *rig.World) {
		h, admin := w.Host("a"), w.Host(rig.Admin)
		_, err := put(w, h, "mine/k", time.Second)
		require.NoError(w.T, err)
		require.Zero(w.T, w.Server.Refusals()[rig.InvalidToken])
		time.Sleep(5 * time.Second)
		_, err = h.Client.Get(w.T.Context(), "mine/k")
		require.NoError(w.T, err)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.InvalidToken])
		_, err = put(w, h, "others", time.Second)
		require.ErrorIs(w.T, err, rpctypes.ErrPermissionDenied)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.Denied])
		_, err = put(w, admin, "others", time.Second)
		require.NoError(w.T, err)

		// A restart forgets every token; keys and users stay.
		w.Server.Stop()
		require.NoError(w.T, w.Server.Start())
		ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
		defer cancel()
		_, err = h.Client.Get(ctx, "mine/k")
		require.NoError(w.T, err)
		require.Greater(w.T, w.Server.Refusals()[rig.InvalidToken], 1)
	})
}
