package regressions

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 39. The leader crashes, and etcd changes its own leader before the lease has expired. The new
// etcd leader restarts every lease, with the full TTL and an election timeout E, so the fail-over
// takes up to twice as long; in other implementations that is not documented, and is taken for a
// hang. In Eldest the bound is documented (docs/operations/sizing.md) and measured: from the crash
// TTL + 1 s on a healthy etcd; after a change of etcd's leader TTL + E + 1 s more, and 2 E where it
// was killed and another one had to be elected. Safety is not affected: the leading context has
// ended long before.
//
// Eldest controls only two parts of this: the waiter is notified of the end on whichever member its
// watch is by then, and the old leader's deadline does not follow etcd's.
func TestRegression39_LeasesRestartWithEtcdsLeader(t *testing.T) {
	t.Parallel()
	const life, timeout = 3 * time.Second, 300 * time.Millisecond // timeout is the election timeout of three
	for what, scene := range map[string]struct {
		change func(t *testing.T, c *etcdtest.Cluster, leads int)
		// bound is how long the successor's win may take, from the change or, without one, from the
		// crash.
		bound time.Duration
	}{
		"healthy": {bound: life + time.Second},
		"moved": {bound: life + timeout + time.Second, change: func(t *testing.T, c *etcdtest.Cluster, leads int) {
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), (leads+1)%3))
		}},
		"killed": {bound: 2*timeout + life + timeout + time.Second, change: func(t *testing.T, c *etcdtest.Cluster, leads int) {
			require.NoError(t, c.Member(leads).Kill())
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			// A machine that is busy with other work may need a second try.
			for try := range 3 {
				took, late, valid := failover(t, life, scene.change)
				t.Logf("the successor led %v after the crash or the change; valid: %v, the old leader's end was noted late: %v", took, valid, late)
				if valid && !late && took <= scene.bound {
					return
				}
				if try == 2 {
					require.True(t, valid, "INVALID: the lease was not counted anew: %v for a TTL of %v", took, life)
					require.False(t, late, "the old leading context ended after the successor's win")
					require.LessOrEqual(t, took, scene.bound, "later than the documented bound")
				}
			}
		})
	}
}

// failover crashes a leader, makes etcd change its own leader when most of the TTL has passed, and
// returns how long after that the successor won. The result is valid if the lease had not expired
// at the change, and was restarted. late means that the end of the old leading context was noted
// after the win: its timer was due, and perhaps its goroutine was not scheduled.
func failover(t *testing.T, life time.Duration, change func(*testing.T, *etcdtest.Cluster, int)) (took time.Duration, late, valid bool) {
	t.Helper()
	c := three(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	defer host.Mend()
	tenure := join(t, host.Client(t), name, ttl(life)).Lead(t)
	result := join(t, c.Client(t), name).Queue(t)
	ended := make(chan time.Time, 1)
	context.AfterFunc(tenure.Context(), func() { ended <- time.Now() })

	host.Cut() // like a crash: no resignation, and no renewal
	since, valid := time.Now(), true
	if change != nil {
		leads, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
		<-time.After(life * 6 / 10) // the fault itself: most of the TTL has passed
		valid = len(result) == 0
		since = time.Now()
		change(t, c, leads)
	}
	won := electiontest.Wins(t, result)
	require.Error(t, tenure.Err(), "two leading contexts")
	require.ErrorIs(t, tenure.Err(), eldest.ErrSessionLost)
	end := etcdtest.Take(t, ended, "the end of the leading context")
	require.Greater(t, won.Token(), tenure.Token())
	require.Positive(t, host.Stats().Dropped.Inbound, "INVALID: nothing was cut")
	took = won.At.Sub(since)
	return took, end.After(won.At), valid && (change == nil || took >= life)
}
