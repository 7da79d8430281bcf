package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
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

// reads counts the requests with a read that counts accepts, equal ones once: a member that sends
// an event before its own write is complete refuses a read at that revision, and is asked again.
func (s *env) reads(counts func(*etcdserverpb.RangeRequest) bool) int {
	asked := map[string]bool{}
	for _, call := range s.Rec.Calls("Txn", "Range") {
		var reads []*etcdserverpb.RangeRequest
		switch req := call.Request.(type) {
		case *etcdserverpb.RangeRequest:
			reads = append(reads, req)
		case *etcdserverpb.TxnRequest:
			reads = pointedReads(req)
		}
		if slices.ContainsFunc(reads, counts) {
			asked[fmt.Sprint(call.Request)] = true
		}
	}
	return len(asked)
}

// pointedReads returns the reads of a transaction and of nested transactions.
func pointedReads(txn *etcdserverpb.TxnRequest) (reads []*etcdserverpb.RangeRequest) {
	for _, op := range slices.Concat(txn.Success, txn.Failure) {
		if read := op.GetRequestRange(); read != nil {
			reads = append(reads, read)
		} else if inner := op.GetRequestTxn(); inner != nil {
			reads = append(reads, pointedReads(inner)...)
		}
	}
	return reads
}

// search reports whether etcd has to search the queue for a read.
func search(r *etcdserverpb.RangeRequest) bool {
	return len(r.RangeEnd) > 0 && (r.Limit == 0 || r.SortTarget != etcdserverpb.RangeRequest_KEY || r.MaxCreateRevision > 0)
}

// proof reports whether a read is of the queue at the revision of the predecessor's deletion.
func proof(r *etcdserverpb.RangeRequest) bool { return r.Revision > 0 }

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

// A registration is one request of single keys, whatever the queue contains; a departure is one
// request of one waiter.
func TestPointerRequests(t *testing.T) {
	const crowd = 50
	for _, tc := range []struct {
		name     string
		queue    txn.Ordering
		searches int
	}{{"pointer", txn.ByPointer{}, 0}, {"default", txn.ByCreateRevision{}, crowd}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newEnv(t)
			elder := s.enter(tc.queue)
			leader := electiontest.Wins(t, elder.won)
			s.Rec.Reset()
			var all []*pointing
			for range crowd {
				all = append(all, s.enter(tc.queue))
			}
			require.Len(t, s.Rec.Calls("Txn"), crowd, "one request each")
			require.Equal(t, tc.searches, s.reads(search))
			for i := range all[:5] {
				s.Rec.Reset()
				require.NoError(t, leader.Resign(s.Ctx))
				leader = electiontest.Wins(t, all[i].won)
				require.Equal(t, 1, s.reads(proof), "one waiter asks, once")
				require.Equal(t, all[i].place.Token, leader.Token())
			}
		})
	}
}

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

// Candidates of both kinds register, leave and lead concurrently; they win in the order of their
// keys, and every candidate that stays wins.
func TestPointerInAMixedCrowd(t *testing.T) {
	s := newEnv(t)
	const crowd = 40
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

// undecided is an Ordering that at first cannot say which candidates are older.
type undecided struct {
	txn.ByCreateRevision
	left atomic.Int64
}

func (q *undecided) EnterAlone(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Position, error) {
	return q.unsaid(q.Enter(ctx, kv, e))
}

func (q *undecided) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Position, at int64) (txn.Position, error) {
	next, err := q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
	if q.left.Add(-1) >= 0 {
		return q.unsaid(next, err)
	}
	return next, err
}

func (*undecided) unsaid(p txn.Position, err error) (txn.Position, error) {
	p.Ahead, p.Complete = nil, false
	return p, err
}

// A position without any information is no win, however often etcd answers.
func TestTryOfAQueueThatIsUndecided(t *testing.T) {
	s := newEnv(t)
	elder := s.lead(s.candidate("elder"))
	q := &undecided{}
	c := s.candidate("v", func(cfg *election.Config) { cfg.Ordering = q })
	q.left.Store(3)
	require.ErrorIs(t, etcdtest.Err(c.Try(s.Ctx)), eldest.ErrNotElected)
	require.Equal(t, []string{elder.Key()}, s.Queue())
	require.NoError(t, elder.Resign(s.Ctx))
	q.left.Store(3)
	l, err := c.Try(s.Ctx)
	require.NoError(t, err)
	require.Negative(t, q.left.Load())
	require.NoError(t, l.Resign(s.Ctx))
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
