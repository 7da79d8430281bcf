package regressions

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// viewer checks all states that an observer reports, from the first one on.
type viewer struct {
	t      *testing.T
	sub    *observe.Subscription
	newest eldest.Token
	states []eldest.State
}

// until reads states until one fits; none of them may go back.
func (v *viewer) until(what string, fits func(eldest.State) bool) eldest.State {
	v.t.Helper()
	ctx := etcdtest.Context(v.t)
	for {
		s, err := v.sub.Next(ctx)
		require.NoError(v.t, err, what)
		v.states = append(v.states, s)
		if s.Kind == eldest.Led {
			require.GreaterOrEqual(v.t, s.Leader.Token, v.newest, "a token went back")
			v.newest = s.Leader.Token
		}
		require.Equal(v.t, s.Kind == eldest.Unknown, s.Reason != nil, "unknown without a reason, or a reason without")
		if fits(s) {
			return s
		}
	}
}

func (v *viewer) kind(k eldest.Kind) eldest.State {
	v.t.Helper()
	return v.until(k.String(), func(s eldest.State) bool { return s.Kind == k })
}

func (v *viewer) leader(token eldest.Token) eldest.State {
	v.t.Helper()
	return v.until(fmt.Sprintf("leader %d", token), func(s eldest.State) bool { return s.Leader.Token == token })
}

// Row 22: a reader that is slow, and 2,500 updates. In other implementations they pile up in a
// buffer, or the reader blocks the others. In Eldest the newest value is delivered, and no value is
// kept for a reader.
//
// Fails when a subscription is a queue, or when the observer waits for its readers.
//
// Not parallel: it measures the heap, which all tests share.
func TestRegression22_SlowReader(t *testing.T) {
	const updates, size = 2_500, 4096
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	p := join(t, c.Client(t), name)
	leader := p.Lead(t)
	// Without liveness checks, which may take an observer that lags behind for one whose watch is
	// dead.
	o, slow := tiedViewer(t, c.Client(t), name, -1)
	slow.leader(leader.Token())
	isLast := func(s eldest.State) bool { return string(s.Leader.Value) == "the last one" }
	quick := make(chan int, 1)
	sub := o.Subscribe()
	ctx, cancel := context.WithTimeout(context.Background(), 4*etcdtest.Patience) // so many updates take long on a busy machine
	defer cancel()
	go func() { // another reader, which keeps up as well as it can
		for seen := 1; ; seen++ {
			state, err := sub.Next(ctx)
			if !assert.NoError(t, err) || isLast(state) {
				quick <- seen
				return
			}
		}
	}()

	var before, afterwards runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var writing sync.WaitGroup
	const writers = 16
	for w := range writers {
		cli := c.Client(t)
		writing.Go(func() {
			for i := range updates / writers {
				value := fmt.Sprintf("%0*d", size, w*updates+i)
				if _, err := cli.Put(ctx, leader.Key(), value, clientv3.WithLease(p.Session.ID())); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	writing.Wait()
	require.NoError(t, leader.Proclaim(etcdtest.Context(t), []byte("the last one")))
	states := etcdtest.Take(t, quick, "the last value")
	var grown int64
	// The leader watches its own key, and may still be processing some of the updates.
	for begin := time.Now(); ; <-time.After(100 * time.Millisecond) {
		runtime.GC()
		runtime.ReadMemStats(&afterwards)
		grown = int64(afterwards.HeapAlloc) - int64(before.HeapAlloc)
		if grown < int64(updates*size/4) || time.Since(begin) > etcdtest.Patience/4 {
			break
		}
	}
	t.Logf("the quick reader saw %d states of %d; the heap grew by %d KiB", states, updates, grown/1024)
	require.Greater(t, states, 10, "the slow reader held up the quick one")
	require.Less(t, grown, int64(updates*size/4), "updates are kept for the slow reader")
	// The slow reader receives the newest state first, and then nothing until the next change.
	seen := len(slow.states)
	slow.until("the last value", isLast)
	require.Len(t, slow.states, seen+1, "it was given what is past")
	require.ErrorIs(t, etcdtest.Err(slow.sub.Next(deadContext())), errMine)
}

// Row 23 (etcd #18163). A's key is deleted and B's put in one batch. In other implementations the
// observer then reports a key that was deleted. In Eldest every state was true at its revision.
//
// Fails when observe takes the last event of a batch for the leader, or publishes in the middle of
// a revision.
func TestRegression23_DeleteAndPutInOneBatch(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	cli := c.Client(t)
	// Without liveness checks, which would correct the errors that the batches cause.
	o, v := tiedViewer(t, c.Client(t), name, -1)
	granted, err := cli.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	// Keys are put by hand: a candidate cannot do two operations in one revision.
	const batches = 100
	key := func(i int) string { return keys.Candidate(name, int64(granted.ID)+int64(i)) }
	put := func(i int) clientv3.Op { return clientv3.OpPut(key(i), "", clientv3.WithLease(granted.ID)) }
	resp, err := cli.Txn(etcdtest.Context(t)).Then(put(0)).Commit()
	require.NoError(t, err)
	v.leader(eldest.Token(resp.Header.Revision))
	// A reader in a tight loop, so that no state is missed.
	var states []eldest.State
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		var last eldest.State
		for begin := time.Now(); last.Leader.Key != key(batches) && time.Since(begin) < 4*etcdtest.Patience; {
			if s := o.State(); s.Kind != last.Kind || s.Revision != last.Revision {
				states = append(states, s)
				last = s
			}
		}
	}()
	for i := range batches {
		ops := []clientv3.Op{clientv3.OpDelete(key(i)), put(i + 1)}
		if i%2 == 1 {
			ops[0], ops[1] = ops[1], ops[0]
		}
		require.NoError(t, etcdtest.Err(cli.Txn(etcdtest.Context(t)).Then(ops...).Commit()))
	}
	<-looking
	require.Equal(t, key(batches), o.State().Leader.Key, "it reports a key that is gone")
	checked := map[int64]bool{}
	begin, end := keys.Range(name)
	for _, s := range states {
		require.NotEqual(t, eldest.Nobody, s.Kind, "nobody reported at %d", s.Revision)
		if s.Kind == eldest.Unknown || checked[s.Revision] {
			continue
		}
		checked[s.Revision] = true
		first := append(clientv3.WithFirstCreate(), clientv3.WithRange(end), clientv3.WithRev(s.Revision))
		was, err := cli.Get(etcdtest.Context(t), begin, first...)
		require.NoError(t, err)
		require.Len(t, was.Kvs, 1)
		require.Equal(t, string(was.Kvs[0].Key), s.Leader.Key, "reported at revision %d", s.Revision)
		require.EqualValues(t, was.Kvs[0].CreateRevision, s.Leader.Token)
	}
	require.Greater(t, len(checked), 5, "the reader missed nearly all")
	v.kind(eldest.Led)
}
