package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Beside each other, but beside no other test: on a machine that is so busy healthy leaders are suspended.
func TestHeartbeats(t *testing.T) {
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		each(t, []string{contender.Heartbeat1s, contender.Heartbeat500ms}, func(t *testing.T, name string) {
			crashes(t, name, name == contender.Heartbeat500ms)
		})
	})
	t.Run("suspensions", func(t *testing.T) {
		t.Parallel()
		without := etcdtest.Share(t, 1, contender.Eldest, contender.Concurrency) // neither has heartbeats
		each(t, append(without, contender.Heartbeat500ms), testSuspensions)
	})
	t.Run("writes", func(t *testing.T) {
		t.Parallel()
		testHeartbeats(t)
	})
}

// Suspensions and moves are counted in each regime: if etcd's leader is killed, leaders with
// heartbeats are suspended, and no leadership of Eldest moves. Each regime has an etcd of its own; one member is
// enough for writes.
func testSuspensions(t *testing.T, name string) {
	for regime, members := range map[string]int{"writes": 1, "leader-killed": 3} {
		t.Run(regime, func(t *testing.T) {
			t.Parallel()
			m := suspended(t, name, regime, members)
			for _, metric := range []string{"suspensions", "resumptions", "moves", "without"} {
				require.Zero(t, m.of(name, regime, 0, metric).Errors, m.of(name, regime, 0, metric).FirstError)
			}
			require.Zero(t, m.of(name, regime, 0, "moves").Sum)
			require.Nil(t, m.Find(name, "hogs", 0, "moves"), "other regimes are not measured")
			if regime == "writes" {
				return
			}
			killed := m.of(name, regime, 0, "suspensions")
			require.Equal(t, name == contender.Heartbeat500ms, killed.Sum > 0, "an election of etcd takes longer than half a second")
			require.Equal(t, killed.Sum > 0, m.of(name, regime, 0, "resumptions").Sum > 0)
			require.Equal(t, killed.Sum > 0, m.of(name, regime, 0, "without").Max > 0)
		})
	}
}

// suspended measures the suspensions of a contender in one regime.
func suspended(t *testing.T, name, regime string, members int) measured {
	t.Helper()
	c := etcdtest.Start(t, etcdtest.Config{Members: members, Heartbeat: 50 * time.Millisecond, Election: 500 * time.Millisecond})
	site := siteOf(c)
	site.KillLeader = func(ctx context.Context) (time.Time, func(context.Context) error, error) {
		i, err := c.Leader(ctx)
		if err == nil {
			err = c.Member(i).Kill()
		}
		return time.Now(), func(ctx context.Context) error { return c.Restart(ctx, i) }, err
	}
	report, err := Run(testContext(t), site, "suspensions", Options{
		Rounds: 1, Contenders: []string{name}, For: 4 * time.Second, Regimes: []string{regime}, Load: 20,
	})
	require.NoError(t, err)
	return measured{t, report}
}

// Processes keep the processors busy as long as a turn lasts. If no process can be started, or no
// member can be killed, there is a note.
func TestSuspensionsByHogs(t *testing.T) {
	o := Options{Rounds: 1, Contenders: []string{contender.Heartbeat1s}, For: time.Second, Regimes: []string{"hogs", "leader-killed"}}
	report, err := Run(testContext(t), siteOf(etcdtest.Shared(t)), "suspensions", o)
	require.NoError(t, err)
	require.Zero(t, report.Find(contender.Heartbeat1s, "hogs", 0, "moves").Sum)
	require.Len(t, report.Notes, 1)
	require.Contains(t, report.Notes[0], "no member can be killed here")
}

// Heartbeats are writes, as many as their interval requires; without heartbeats there are no
// writes.
func testHeartbeats(t *testing.T) {
	const n = 3
	perMinute := map[string]int64{contender.Eldest: 0, contender.Heartbeat1s: 4 * n * 60, contender.Heartbeat500ms: 8 * n * 60}
	each(t, heartbeats.Defaults.Contenders, func(t *testing.T, name string) {
		m := measure(t, "heartbeats", Options{Rounds: 1, Sizes: []int{n}, For: 3 * time.Second, Contenders: []string{name}})
		writes, want := m.of(name, "lead", n, "writes").P50, perMinute[name]
		require.LessOrEqual(t, writes, want*6/5)
		require.GreaterOrEqual(t, writes, want/2)
		require.NotNil(t, m.of(name, "lead", n, "client-cpu"))
		require.Nil(t, m.Find(name, "lead", n, "database"), "there were no metrics")
	})
}
