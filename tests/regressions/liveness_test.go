package regressions

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 36 (a 48-minute outage of PD), with a liveness probe: the lead function calls Alive where it
// makes progress, and then hangs. In other implementations its lease is renewed for as long as the
// process runs, and no other candidate may lead. In Eldest leadership passes on within the probe's
// timeout, a renewal and a TTL; the node is a candidate again, and when its application works again
// it leads once more.
//
// Fails when a renewal is sent without checking the liveness probe.
func TestRegression36_StuckApplicationWithALivenessProbe(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	const within, life = 2 * time.Second, 6 * time.Second
	pulse := lease.NewLiveness(within)
	var stuck atomic.Bool
	n := stand(t, c.Client(t), name, "n", func(ctx context.Context, _ *elector.Leadership) error {
		for work := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
			if !stuck.Load() {
				pulse.Alive()
			}
			select {
			case <-work.C:
			case <-ctx.Done():
				work.Stop()
			}
		}
		return nil
	}, lasting(life), func(cfg *elector.Config) { cfg.Session.Liveness = pulse })
	l := etcdtest.Take(t, n.won, "the win")
	next := stand(t, c.Client(t), name, "next", untilTheEnd)
	next.follows(t, n, l.Token())
	// The function works for longer than the lease's TTL, and the tenure does not end.
	etcdtest.Never(t, func() bool { return l.Err() != nil }, within+life, "it was lost beside a function that makes progress")

	stuck.Store(true)
	second := etcdtest.Take(t, next.won, "the successor's win")
	require.ErrorIs(t, l.Err(), eldest.ErrUnresponsive)
	require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	stuck.Store(false)
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // a follower must be live as well, or it would lose its position
		for work := time.NewTicker(20 * time.Millisecond); alive.Err() == nil; <-work.C {
			pulse.Alive()
		}
	}()
	n.follows(t, next, second.Token())
	_ = next.end(t)
	require.Greater(t, etcdtest.Take(t, n.won, "its second win").Token(), second.Token())
}
