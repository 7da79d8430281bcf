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
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a host that has made a request already.
type host struct {
	*rig.Host
	w *rig.World
}

func add(w *rig.World, name string) host {
	h := host{w.Host(name), w}
	h.puts("before", time.Second)
	return h
}

// put writes with a time-out and returns how long it took.
func (h host) put(key string, patience time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(h.w.T.Context(), patience)
	defer cancel()
	begun := h.w.Now()
	_, err := h.Client.Put(ctx, key, "v")
	return h.w.Now() - begun, err
}

// puts is a put that succeeds.
func (h host) puts(key string, patience time.Duration) time.Duration {
	h.w.T.Helper()
	took, err := h.put(key, patience)
	require.NoError(h.w.T, err)
	return took
}

// fails is a put that fails.
func (h host) fails(key string, patience time.Duration, target error) {
	h.w.T.Helper()
	_, err := h.put(key, patience)
	require.ErrorIs(h.w.T, err, target)
}

// written reports whether the store has the key, independently of the clients' replies.
func (h host) written(key string) bool {
	time.Sleep(10 * time.Millisecond) // for everything that happens at this instant
	return len(h.w.Server.Tap.Live(key, key+"\x00")) > 0
}

func isPut(method string, _ any) bool { return strings.HasSuffix(method, "/Put") }

func dice() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// Minutes of a lease's life pass in milliseconds, and the lease of a crashed client expires.
func TestVirtualTime(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		ctx, h, admin := context.Background(), w.Host("a"), w.Host("admin")
		lease, err := h.Client.Grant(ctx, 5)
		require.NoError(t, err)
		renewals, err := h.Client.KeepAlive(ctx, lease.ID)
		require.NoError(t, err)
		_, err = h.Client.Put(ctx, "k", "v", clientv3.WithLease(lease.ID))
		require.NoError(t, err)
		gone, n := admin.Client.Watch(ctx, "k"), 0
		for end := w.Now() + 10*time.Minute; w.Now() < end; n++ {
			<-renewals
		}
		require.Greater(t, n, 100)
		died := w.Now()
		h.Kill()
		<-gone
		require.InDelta(t, 5*time.Second, w.Now()-died, float64(3*time.Second))
	})
}

// Each kind of cut holds bytes, and healing delivers them.
func TestCut(t *testing.T) {
	for way, done := range map[rig.Way]bool{rig.Both: false, rig.Out: false, rig.In: true} { // done although the client gets no reply
		rig.Run(t, func(w *rig.World) {
			h := add(w, "a")
			h.Cut(way)
			h.fails("during", time.Second, context.DeadlineExceeded)
			require.Equal(w.T, done, h.written("during"), way)
			require.Positive(w.T, h.Effects().Held)
			h.Heal()
			h.puts("after", time.Second)
			require.True(w.T, h.written("after"))
		})
	}
}

// A delay takes as long as configured, in its direction only, and ends.
func TestDelay(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := add(w, "a")
		h.Settle(time.Millisecond)
		require.Equal(w.T, 2*time.Millisecond, h.puts("k", time.Second))
		h.Delay(rig.In, 700*time.Millisecond)
		require.Equal(w.T, 702*time.Millisecond, h.puts("k", time.Second))
		require.Positive(w.T, h.Effects().Late)
		h.Heal()
		require.Equal(w.T, 2*time.Millisecond, h.puts("k", time.Second))

		// Bytes in flight stay late, and so do all behind them, unless they are hurried.
		h.Delay(rig.Out, time.Minute)
		h.fails("late", time.Second, context.DeadlineExceeded)
		h.Heal()
		h.fails("k", time.Second, context.DeadlineExceeded)
		h.Hurry()
		require.LessOrEqual(w.T, h.puts("k", time.Second), 4*time.Millisecond)
	})
}

// A dropped connection's last request is executed late, while a new one works.
func TestDrop(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := add(w, "a")
		h.Delay(rig.Out, 3*time.Second)
		h.fails("late", 10*time.Millisecond, context.DeadlineExceeded)
		require.Equal(w.T, 1, h.Drop())
		h.Heal()
		time.Sleep(10 * time.Millisecond) // for the client to notice it
		h.puts("after", time.Second)
		require.False(w.T, h.written("late"))
		time.Sleep(3 * time.Second)
		require.True(w.T, h.written("late"))
	})
}

// A host that lost its power sends nothing and receives nothing; one that is reset
// dials again.
func TestUnplugAndReset(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		a, b := add(w, "a"), add(w, "b")
		a.Unplug()
		a.fails("dead", time.Second, context.DeadlineExceeded)
		require.False(w.T, a.written("dead"))
		require.Equal(w.T, 1, b.Reset())
		time.Sleep(10 * time.Millisecond)
		b.puts("again", 5*time.Second)
	})
}

// A trap before a request prevents its execution. A trap at its reply delays the reply, which is
// delivered even if the request's context has ended; one that loses the reply leaves the request
// executed, and the client gets no reply. Each takes effect once.
func TestTrap(t *testing.T) {
	for name, c := range map[string]struct {
		trap  rig.Trap
		reset bool
	}{
		"before": {}, "at the reply": {trap: rig.Trap{After: true}},
		"lost": {trap: rig.Trap{After: true, Lose: true}}, "lost with the connection": {rig.Trap{After: true, Lose: true}, true},
	} {
		rig.Run(t, func(w *rig.World) {
			h, strikes, trap := add(w, "a"), 0, c.trap
			trap.Match, trap.Strike = isPut, func() {
				strikes++
				time.Sleep(3 * time.Second)
				require.Equal(w.T, trap.After, h.written("k"), name)
				if c.reset {
					h.Reset()
				}
			}
			h.Set(&trap)
			require.Equal(w.T, !trap.Lose, h.Armed(), "one that loses a reply does not count")
			took, err := h.put("k", 2*time.Second)
			require.Equal(w.T, trap.After && !trap.Lose, err == nil, name)
			require.GreaterOrEqual(w.T, took, 3*time.Second, name)
			require.Equal(w.T, trap.After, h.written("k"), name)
			require.False(w.T, h.Armed())
			h.puts("again", 10*time.Second)
			require.Equal(w.T, 1, strikes, name)
		})
	}
}

// A frozen host sends and receives nothing, whatever heals; then everything arrives at once.
func TestFreeze(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := add(w, "a")
		h.Freeze()
		h.Heal()
		done := make(chan time.Duration)
		go func() { done <- h.puts("k", time.Minute) }()
		time.Sleep(5 * time.Second)
		require.False(w.T, h.written("k"))
		require.Positive(w.T, h.Effects().Held)
		h.Thaw()
		require.InDelta(w.T, 5*time.Second, <-done, float64(20*time.Millisecond))
	})
}

// A starving host takes longer, until that ends. Lost packets come late and in order, and none is missing.
func TestStarveAndLossy(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h := add(w, "a")
		h.Starve(time.Second, dice())
		require.Positive(w.T, h.puts("k", time.Minute))
		require.Equal(w.T, 2, h.Effects().Starved)
		h.Starve(0, nil)
		require.Zero(w.T, h.puts("k", time.Minute))

		h.Lossy(rig.Both, 0.3, dice())
		begun := w.Now()
		for range 100 {
			h.puts("k", time.Minute)
		}
		require.Greater(w.T, h.Effects().Resent, 20)
		require.GreaterOrEqual(w.T, w.Now()-begun, 20*200*time.Millisecond)
		h.Heal()
		// A packet that was lost before, such as an acknowledgement of the connection, still
		// arrives late, and what is sent now waits behind it.
		time.Sleep(4 * time.Second)
		require.Zero(w.T, h.puts("k", time.Minute))
	})
}

// The server keeps its data over restarts, and the tap records every change once, with the create
// revision of what was deleted, in spite of compactions.
func TestRestartAndTap(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		ctx, h := w.T.Context(), add(w, "a")
		for range 3 {
			w.Server.Stop()
			require.False(w.T, w.Server.Up())
			require.NoError(w.T, w.Server.Start())
			h.puts("before", 10*time.Second)
			_, err := h.Client.Compact(ctx, w.Server.Rev())
			require.NoError(w.T, err)
		}
		_, err := h.Client.Get(ctx, "before", clientv3.WithRev(2))
		require.ErrorIs(w.T, err, rpctypes.ErrCompacted)
		_, err = h.Client.Delete(ctx, "before")
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

// While the alarm is active, puts fail and deletions succeed. A watch that was partitioned while a
// compaction overtook it receives that error. The refusals are counted.
func TestRefusals(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		h, admin := add(w, "a"), add(w, rig.Admin)
		events := h.Client.Watch(w.T.Context(), "k", clientv3.WithCreatedNotify())
		require.True(w.T, (<-events).Created)
		require.NoError(w.T, w.Server.Full(true))
		h.fails("k2", time.Second, rpctypes.ErrNoSpace)
		_, err := h.Client.Delete(w.T.Context(), "before")
		require.NoError(w.T, err)
		require.NoError(w.T, w.Server.Full(false))
		h.puts("k2", time.Second)

		h.Cut(rig.Both)
		admin.puts("other", time.Second)
		admin.puts("other", time.Second)
		_, err = admin.Client.Compact(w.T.Context(), w.Server.Rev())
		require.NoError(w.T, err)
		h.Reset()
		h.Heal()
		require.NotZero(w.T, (<-events).CompactRevision)
		require.Equal(w.T, map[rig.Refusal]int{rig.NoSpace: 1, rig.Compacted: 1}, w.Server.Refusals())
	})
}

// With authentication, a token that was not used for its lifetime is refused, and the client gets
// another; only the administrator may use keys outside the ranges.
func TestTokens(t *testing.T) {
	rig.RunWith(t, rig.Options{Tokens: 2 * time.Second, Ranges: [][2]string{{"before", "before\x00"}}}, func(w *rig.World) {
		h, admin := add(w, "a"), add(w, rig.Admin)
		require.Zero(w.T, w.Server.Refusals()[rig.InvalidToken])
		time.Sleep(5 * time.Second)
		h.puts("before", time.Second)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.InvalidToken])
		h.fails("others", time.Second, rpctypes.ErrPermissionDenied)
		require.Equal(w.T, 1, w.Server.Refusals()[rig.Denied])
		admin.puts("others", time.Second)

		// A restart invalidates every token; keys and users stay.
		w.Server.Stop()
		require.NoError(w.T, w.Server.Start())
		h.puts("before", time.Minute)
		require.Greater(w.T, w.Server.Refusals()[rig.InvalidToken], 1)
	})
}
