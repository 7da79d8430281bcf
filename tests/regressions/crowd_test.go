package regressions

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 37. 1,000 candidates at once, then 1,000 departures one after another. In other
// implementations every departure woke every waiter, and callers received "too many requests". In
// Eldest each candidate waits once and is woken once, and no caller notices the crowd.
//
// Fails when waiters watch the leader or the range.
func TestRegression37_Crowd(t *testing.T) {
	t.Parallel()
	const crowd, clients = 1000, 20
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	people := make([]*participant, crowd)
	var joining sync.WaitGroup
	for i := range clients {
		cli := c.Client(t, rec.Attach)
		joining.Go(func() {
			for j := i; j < crowd; j += clients {
				people[j] = join(t, cli, name, func(l *lease.Config, e *election.Config) {
					// Without liveness checks, and without a second watch where a busy etcd
					// confirms the first one late: the test counts the cost of one watch.
					e.WatchCheck, e.Timeout = -1, etcdtest.Patience
					// No lease is renewed meanwhile, or lost on a busy machine.
					l.TTL = time.Hour
				})
			}
		})
	}
	joining.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 8*etcdtest.Patience)
	defer cancel()
	queued := make(chan struct{})
	tokens := make(chan eldest.Token, crowd)
	var campaigns, registering sync.WaitGroup
	for _, p := range people {
		registering.Add(1)
		campaigns.Go(func() {
			_, err := p.Candidate.Register(ctx)
			registering.Done()
			if !assert.NoError(t, err) {
				return
			}
			l, err := p.Candidate.Await(ctx)
			if !assert.NoError(t, err) {
				return
			}
			<-queued
			tokens <- l.Token()
			assert.NoError(t, l.Resign(ctx))
		})
	}
	registering.Wait()
	require.Len(t, queueOf(t, c, name), crowd)
	waits := 0
	etcdtest.Eventually(t, func() bool { // every candidate except the first waits
		waits = 0
		for _, p := range people {
			waits += len(p.Waiting)
		}
		return waits == crowd-1
	}, "the crowd waits")
	begin := time.Now()
	close(queued)
	campaigns.Wait()
	t.Logf("%d departures in %v", crowd, time.Since(begin))
	close(tokens)
	var last eldest.Token
	for token := range tokens {
		require.Greater(t, token, last, "out of order")
		last = token
	}
	events := map[string]int{}
	for _, ev := range rec.Events() {
		if ev.Type == clientv3.EventTypeDelete {
			events[string(ev.Kv.Key)]++
		}
	}
	for _, p := range people {
		require.LessOrEqual(t, len(p.Waiting), 1, "it waited for more than one key")
		// The successor's watch, and perhaps the candidate's own.
		require.LessOrEqual(t, events[p.Candidate.Key()], 2, "one departure woke many")
	}
	var leaving sync.WaitGroup
	for _, p := range people {
		leaving.Go(p.Leave)
	}
	leaving.Wait()
}
