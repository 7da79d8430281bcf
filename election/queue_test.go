package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// by changes the Ordering of a Config.
func by(q txn.Ordering) func(*election.Config) {
	return func(cfg *election.Config) { cfg.Ordering = q }
}

// pointing is a candidate that awaits its win.
type pointing struct {
	*election.Candidate
	place election.Position
	won   <-chan electiontest.Outcome
}

// enter enters the queue and awaits the win.
func (s *env) enter(q txn.Ordering) *pointing {
	s.T.Helper()
	c := s.candidate("", by(q))
	return &pointing{c, s.register(c), s.awaiting(c)}
}

// hint writes the pointer as an outside client would.
func (s *env) hint(value string) { s.Put(keys.Newest(s.Election), value) }

// Hints that are missing, old, wrong or malicious cost reads and nothing else: candidates win in
// the order of create revisions.
func TestPointerProvesNothing(t *testing.T) {
	s := newEnv(t)
	first := s.enter(txn.ByPointer{})
	leader := electiontest.Wins(t, first.won)
	for range 20 { // otherwise the hint would not be used
		s.hint("")
	}
	outsider := s.candidate("", by(txn.ByCreateRevision{}))
	var line []*pointing
	for _, hint := range []func(){
		func() { s.hint("") },
		func() { s.hint("no key at all\x00") },
		func() { s.hint(keys.Candidate("another", 7)) },
		func() { s.hint(first.Key()) },               // exists, but with another create revision
		func() { s.hint(outsider.Key()) },            // does not exist
		func() { s.Remove(keys.Newest(s.Election)) }, // deleted
		func() {},
	} {
		hint()
		line = append(line, s.enter(txn.ByPointer{}))
	}
	for _, next := range line {
		for _, other := range line {
			require.Empty(t, other.won, "nobody wins while somebody older stands")
		}
		require.NoError(t, leader.Resign(s.Ctx))
		leader = electiontest.Wins(t, next.won)
		require.Equal(t, next.place.Token, leader.Token())
	}
	// A candidate that left and comes back reads a pointer to its own earlier key.
	require.NoError(t, leader.Resign(s.Ctx))
	last := line[len(line)-1]
	again, err := last.Campaign(s.Ctx)
	require.NoError(t, err)
	require.Greater(t, again.Token(), leader.Token())
}

// BenchmarkJoin has a thousand candidates enter a queue at once: with the pointer, and with the
// search of the default.
func BenchmarkJoin(b *testing.B) {
	const crowd = 1000
	for _, tc := range []struct {
		name  string
		queue txn.Ordering
	}{{"pointer", txn.ByPointer{}}, {"default", txn.ByCreateRevision{}}} {
		b.Run(tc.name, func(b *testing.B) {
			client := etcdtest.Shared(b).Client(b)
			ctx := context.Background()
			var leases [crowd]int64
			for i := range leases {
				granted, err := client.Grant(ctx, 3600)
				require.NoError(b, err)
				leases[i] = int64(granted.ID)
			}
			for b.Loop() {
				var all sync.WaitGroup
				for _, lease := range leases {
					all.Go(func() {
						if _, err := tc.queue.Enter(ctx, client, txn.Entry{Election: "join-" + tc.name, Lease: lease}); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
				b.StopTimer()
				require.NoError(b, etcdtest.Err(client.Delete(ctx, keys.Prefix("join-"+tc.name), clientv3.WithPrefix())))
				b.StartTimer()
			}
		})
	}
}

// Two candidates, without others, call Try by turns and resign at once; a foreign key is in the
// range. From the 18th registration on the pointer names the other one, which has left.
func TestHintIsNoReasonNotToLead(t *testing.T) {
	s := newEnv(t)
	s.Put(s.Election+"/notes", "foreign")
	a, b := s.candidate("a"), s.candidate("b")
	for i := range 24 {
		c := a
		if i%2 == 1 {
			c = b
		}
		s.queued(1) // only the foreign key
		l, err := c.Try(s.Ctx)
		require.NoError(t, err, "try %d: there is no other candidate", i)
		require.NoError(t, l.Resign(s.Ctx))
	}
}

// G1, with keys put by hand: an older candidate's key was put in one transaction with more foreign
// keys than one reply contains, so all have one create revision. A search that continues below it
// misses it.
//
// Fails if Queue.Ahead pages by revision after a reply with foreign keys only.
func TestElderAmongForeignKeysOfItsTransaction(t *testing.T) {
	s := newEnv(t)
	elder := keys.Candidate(s.Election, 0x7fffffff)
	ops := []clientv3.Op{clientv3.OpPut(elder, "by hand")}
	for i := range 40 {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s!%02d", keys.Prefix(s.Election), i), "foreign"))
	}
	require.NoError(t, etcdtest.Err(s.Admin.Txn(s.Ctx).Then(ops...).Commit()))
	t.Cleanup(func() { // they have no lease
		require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, keys.Prefix(s.Election), clientv3.WithPrefix())))
	})
	_, campaign, waits := s.waitingFor("v")
	select {
	case e := <-waits:
		require.Equal(t, elder, e.Predecessor.Key)
	case won := <-campaign:
		require.Fail(t, "it leads beside an older candidate", "%v", won.Reason)
	case <-s.Ctx.Done():
		require.Fail(t, "it waits for no candidate")
	}
	s.Remove(elder)
	electiontest.Wins(t, campaign)
}

// Candidates of both kinds register, leave and lead concurrently; they win in the order of their
// keys, and every candidate that stays wins.
func TestPointerInAMixedCrowd(t *testing.T) {
	s := newEnv(t)
	const crowd = 24
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	var tokens []int64
	var all sync.WaitGroup
	for i := range crowd {
		var q txn.Ordering = txn.ByPointer{}
		if dice.IntN(3) == 0 {
			q = txn.ByCreateRevision{}
		}
		c, leaves := s.candidate("", by(q)), i > 0 && dice.IntN(3) == 0
		place := s.register(c)
		if leaves {
			all.Go(func() {
				_ = c.Withdraw(s.Ctx) // if it leads, the end of the test resigns
				if l, err := c.Await(s.Ctx); err == nil {
					_ = l.Resign(s.Ctx)
				}
			})
			continue
		}
		all.Go(func() {
			l, err := c.Await(s.Ctx)
			if err != nil {
				t.Errorf("%v: %v", place, err)
				return
			}
			mu.Lock()
			tokens = append(tokens, int64(l.Token()))
			mu.Unlock()
			if err := l.Resign(s.Ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.True(t, slices.IsSorted(tokens), "%v", tokens)
	require.NotEmpty(t, tokens)
}
