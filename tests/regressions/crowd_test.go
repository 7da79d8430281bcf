package regressions

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
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

// busyKV refuses all requests except each third, as an etcd does that has too many in progress.
// (That takes 5,000, more than a test should send.)
type busyKV struct {
	clientv3.KV
	asked, refused atomic.Int64
}

func (kv *busyKV) refuse() bool {
	if kv.asked.Add(1)%3 == 0 {
		return false
	}
	kv.refused.Add(1)
	return true
}

func (kv *busyKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if kv.refuse() {
		return clientv3.OpResponse{}, rpctypes.ErrTooManyRequests
	}
	return kv.KV.Do(ctx, op)
}

func (kv *busyKV) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	if kv.refuse() {
		return nil, rpctypes.ErrTooManyRequests
	}
	return t.Commit(t.Context)
}

// Row 37, the overload itself: registration, proof and resignation are each refused because of it,
// and the caller only notices that they take longer.
//
// Fails when internal/rpcerr.Permanent treats such a refusal as permanent.
func TestRegression37_TooManyRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	cli := c.Client(t)
	kv := &busyKV{}
	kv.KV = etcdtest.WithTxns(cli, kv.commit)
	leader := join(t, c.Client(t), name).Lead(t)
	p := join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.KV = kv })
	result := p.Queue(t)
	etcdtest.Take(t, p.Waiting, "its wait")
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	require.NoError(t, next.Resign(etcdtest.Context(t)))
	require.Greater(t, kv.refused.Load(), int64(5))
	require.Empty(t, queueOf(t, c, name))
}
