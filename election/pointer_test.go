package election_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// pointed is an election whose candidates use a pointer, with a recorded client.
type pointed struct {
	t      *testing.T
	ctx    context.Context
	name   string
	rec    *etcdtest.Recorder
	client *clientv3.Client
	admin  *clientv3.Client
}

func newPointed(t *testing.T) *pointed {
	t.Helper()
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	cluster, rec := etcdtest.Shared(t), &etcdtest.Recorder{}
	return &pointed{t: t, ctx: ctx, name: t.Name(), rec: rec, client: cluster.Client(t, rec.Attach), admin: cluster.Client(t)}
}

// candidate makes one with a session of its own; nothing of it is renewed or rechecked
// while the test lasts, so that only the protocol's requests are counted.
func (s *pointed) candidate(q txn.Queue) *election.Candidate {
	s.t.Helper()
	session, err := lease.Open(s.ctx, lease.Config{Lease: s.admin, TTL: 10 * time.Minute})
	require.NoError(s.t, err)
	c, err := election.New(election.Config{
		Election: s.name, Session: session, KV: s.client, Watcher: s.client, Queue: q, Recheck: -1,
		Timeout: 30 * time.Second,
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = c.Close(ctx)
		_ = session.Close(ctx)
	})
	return c
}

// reads counts the requests with a read that counts accepts.
func (s *pointed) reads(counts func(*etcdserverpb.RangeRequest) bool) (n int) {
	for _, call := range s.rec.Calls("Txn", "Range") {
		var reads []*etcdserverpb.RangeRequest
		switch req := call.Request.(type) {
		case *etcdserverpb.RangeRequest:
			reads = append(reads, req)
		case *etcdserverpb.TxnRequest:
			reads = pointedReads(req)
		}
		if slices.ContainsFunc(reads, counts) {
			n++
		}
	}
	return n
}

// pointedReads are the reads of a transaction, and of those in it.
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

// search is a read for which etcd looks through the queue.
func search(r *etcdserverpb.RangeRequest) bool {
	return len(r.RangeEnd) > 0 && (r.Limit == 0 || r.SortTarget != etcdserverpb.RangeRequest_KEY || r.MaxCreateRevision > 0)
}

// proof is a read of the queue as it was when the predecessor went.
func proof(r *etcdserverpb.RangeRequest) bool { return r.Revision > 0 }

// waits is a candidate in the queue whose result comes on won.
type pointing struct {
	*election.Candidate
	place election.Place
	won   chan *election.Leadership
}

// register enters the queue and awaits the win.
func (s *pointed) register(q txn.Queue) *pointing {
	s.t.Helper()
	w := &pointing{Candidate: s.candidate(q), won: make(chan *election.Leadership, 1)}
	place, err := w.Register(s.ctx)
	require.NoError(s.t, err)
	w.place = place
	go func() {
		if l, err := w.Await(s.ctx); err == nil {
			w.won <- l
		}
	}()
	return w
}

func (s *pointed) wins(w *pointing) *election.Leadership {
	s.t.Helper()
	select {
	case l := <-w.won:
		return l
	case <-s.ctx.Done():
		require.FailNow(s.t, "no win in time")
		return nil
	}
}

// put writes the pointer by hand.
func (s *pointed) put(value string) {
	s.t.Helper()
	_, err := s.admin.Put(s.ctx, keys.Newest(s.name), value)
	require.NoError(s.t, err)
}

// Joining is one request of single keys, whatever stands there; a departure is one
// request of one waiter.
func TestPointerRequests(t *testing.T) {
	const crowd = 50
	for _, tc := range []struct {
		name     string
		queue    txn.Queue
		searches int
	}{{"pointer", txn.ByPointer{}, 0}, {"default", txn.ByCreateRevision{}, crowd}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newPointed(t)
			s.name = "requests-" + tc.name
			elder := s.register(tc.queue)
			leader := s.wins(elder)
			s.rec.Reset()
			var all []*pointing
			for range crowd {
				all = append(all, s.register(tc.queue))
			}
			require.Len(t, s.rec.Calls("Txn"), crowd, "one request each")
			require.Equal(t, tc.searches, s.reads(search))
			for i := range all[:5] {
				s.rec.Reset()
				require.NoError(t, leader.Resign(s.ctx))
				leader = s.wins(all[i])
				require.Equal(t, 1, s.reads(proof), "one waiter asks, once")
				require.Equal(t, all[i].place.Token, leader.Token())
			}
		})
	}
}

// Hints that are missing, old, wrong or malicious cost questions and nothing else: each
// wins in the order of create revisions.
func TestPointerProvesNothing(t *testing.T) {
	s := newPointed(t)
	first := s.register(txn.ByPointer{})
	leader := s.wins(first)
	for range 20 { // or it would not be asked
		s.put("")
	}
	outsider := s.candidate(txn.ByCreateRevision{})
	var line []*pointing
	for _, hint := range []func(){
		func() { s.put("") },
		func() { s.put("no key at all\x00") },
		func() { s.put(keys.Candidate("another", 7)) },
		func() { s.put(first.Key()) },    // alive, but in a life that the hint does not name
		func() { s.put(outsider.Key()) }, // not there
		func() { // gone
			_, err := s.admin.Delete(s.ctx, keys.Newest(s.name))
			require.NoError(t, err)
		},
		func() {},
	} {
		hint()
		line = append(line, s.register(txn.ByPointer{}))
	}
	for _, next := range line {
		for _, other := range line {
			require.Empty(t, other.won, "nobody wins while somebody older stands")
		}
		require.NoError(t, leader.Resign(s.ctx))
		leader = s.wins(next)
		require.Equal(t, next.place.Token, leader.Token())
	}
	// Who left and comes back finds a pointer to its own earlier life.
	require.NoError(t, leader.Resign(s.ctx))
	last := line[len(line)-1]
	again, err := last.Campaign(s.ctx)
	require.NoError(t, err)
	require.Greater(t, again.Token(), leader.Token())
}

// The reply to a registration is lost: the key is found and adopted.
func TestPointerLostReply(t *testing.T) {
	s := newPointed(t)
	leader := s.wins(s.register(txn.ByPointer{}))
	host := etcdtest.Shared(t).Host(t)
	s.client = host.Client(t)
	c := s.candidate(txn.ByPointer{})
	lost := host.SwallowNextReply(etcdtest.Containing(keys.Newest(s.name)))
	_, err := s.client.Get(s.ctx, "warm") // the connection is up
	require.NoError(t, err)
	won := make(chan error, 1)
	go func() {
		_, err := c.Campaign(s.ctx)
		won <- err
	}()
	require.NoError(t, lost.Wait(s.ctx))
	host.Reset() // the attempt ends now and not at its time-out
	require.NoError(t, leader.Resign(s.ctx))
	require.NoError(t, <-won)
}

// A crowd of both kinds comes, goes and leads; wins come in the order of the keys, and
// everybody who stays has one.
func TestPointerInAMixedCrowd(t *testing.T) {
	s := newPointed(t)
	const crowd = 40
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	var tokens []int64
	var all sync.WaitGroup
	for i := range crowd {
		var q txn.Queue = txn.ByPointer{}
		if dice.IntN(3) == 0 {
			q = txn.ByCreateRevision{}
		}
		c, leaves := s.candidate(q), i > 0 && dice.IntN(3) == 0
		place, err := c.Register(s.ctx)
		require.NoError(t, err)
		if leaves {
			all.Go(func() {
				_ = c.Withdraw(s.ctx) // or it leads, and the test's end resigns
				if l, err := c.Await(s.ctx); err == nil {
					_ = l.Resign(s.ctx)
				}
			})
			continue
		}
		all.Go(func() {
			l, err := c.Await(s.ctx)
			if err != nil {
				t.Errorf("%v: %v", place, err)
				return
			}
			mu.Lock()
			tokens = append(tokens, int64(l.Token()))
			mu.Unlock()
			if err := l.Resign(s.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.True(t, slices.IsSorted(tokens), "%v", tokens)
	require.NotEmpty(t, tokens)
}

// BenchmarkJoin has a thousand candidates at once enter a queue: with the pointer, and by
// the search of the default.
func BenchmarkJoin(b *testing.B) {
	const crowd = 1000
	for _, tc := range []struct {
		name  string
		queue txn.Queue
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
				_, err := client.Delete(ctx, keys.Prefix("join-"+tc.name), clientv3.WithPrefix())
				require.NoError(b, err)
				b.StartTimer()
			}
		})
	}
}
