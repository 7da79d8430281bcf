package backoff_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/backoff"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestPauses(t *testing.T) {
	const first, limit = 10 * time.Millisecond, time.Second
	full := backoff.Full(first, limit)
	within := backoff.Within(2*time.Second, full)
	for attempt, step := range map[int]time.Duration{0: first, 1: 2 * first, 5: 32 * first, 7: limit, 60: limit, math.MaxInt: limit} {
		low, high := limit, time.Duration(0)
		for range 1000 {
			pause := full(attempt)
			require.LessOrEqual(t, pause, step)
			require.GreaterOrEqual(t, pause, time.Duration(0))
			low, high = min(low, pause), max(high, pause)
			require.LessOrEqual(t, within(attempt), 200*time.Millisecond)
		}
		require.Less(t, low, step/4, "spread to the bottom")
		require.Greater(t, high, step*3/4, "and to the top")
	}
	require.LessOrEqual(t, backoff.Full(time.Hour, time.Second)(0), time.Second)
}

// While etcd refuses, the attempts are as far apart as the function returns, counted from 0; when
// etcd is available again, the candidate leads.
func TestCampaignWhileEtcdIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cluster := etcdtest.Shared(t)
	host := cluster.Host(t)
	session, err := lease.Open(ctx, lease.Config{Lease: cluster.Client(t), Options: lease.Options{TTL: time.Minute}}) // its own connection stays open
	require.NoError(t, err)
	client := host.Client(t)
	var asked atomic.Int64
	pauses := backoff.Full(time.Millisecond, 20*time.Millisecond)
	candidate, err := election.New(election.Config{
		Election: t.Name(), Session: session, KV: client, Watcher: client,
		Options: election.Options{
			Timeout: 100 * time.Millisecond,
			Backoff: func(attempt int) time.Duration {
				asked.Store(max(asked.Load(), int64(attempt)))
				return pauses(attempt)
			},
		},
	})
	require.NoError(t, err)
	host.Refuse()
	host.Reset()
	won := make(chan error, 1)
	go func() {
		_, err := candidate.Campaign(ctx)
		won <- err
	}()
	require.Eventually(t, func() bool { return asked.Load() >= 5 }, time.Minute, time.Millisecond)
	require.Empty(t, won)
	host.Mend()
	require.NoError(t, <-won)
	require.NoError(t, candidate.Close(ctx))
	require.NoError(t, session.Close(ctx))
}
