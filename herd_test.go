package eldest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// counted is a participant all of whose messages are counted.
type counted struct {
	*participant
	rec    etcdtest.Recorder
	result <-chan outcome
}

// still turns off liveness checks of watches, and repetitions of requests that are only slow: the
// counts must not include them.
func still(_ *lease.Config, e *election.Config) { e.WatchCheck, e.Timeout = -1, 20*time.Second }

// reads returns the number of reads, and how many of them are ranges by create revision: those make
// the server scan the whole queue.
func reads(rec *etcdtest.Recorder) (all, passes int) {
	pass := func(r *etcdserverpb.RangeRequest) {
		if r != nil && len(r.RangeEnd) > 0 {
			passes++
		}
	}
	for _, call := range etcdtest.Questions(rec.Calls("Range", "Txn")) {
		all++
		switch r := call.Request.(type) {
		case *etcdserverpb.RangeRequest:
			pass(r)
		case *etcdserverpb.TxnRequest:
			for _, op := range r.Success {
				pass(op.GetRequestRange())
			}
		}
	}
	return all, passes
}

// watchesOf returns the requests that watch exactly one key.
func watchesOf(rec *etcdtest.Recorder, key string) []*etcdserverpb.WatchCreateRequest {
	var found []*etcdserverpb.WatchCreateRequest
	for _, call := range rec.Calls("Watch") {
		create := call.Request.(*etcdserverpb.WatchRequest).GetCreateRequest()
		if create != nil && string(create.Key) == key && len(create.RangeEnd) == 0 {
			found = append(found, create)
		}
	}
	return found
}

// herd makes an idle queue of n candidates: all wait, and all watches are created.
func herd(t *testing.T, n int) []*counted {
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	people := make([]*counted, n)
	// The sessions may be opened concurrently; candidates are queued in their order.
	var opening sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range people {
		slots <- struct{}{}
		opening.Go(func() {
			defer func() { <-slots }()
			p := &counted{}
			p.participant = electiontest.Join(t, c.Client(t, p.rec.Attach), name, still)
			people[i] = p
		})
	}
	opening.Wait()
	// For the whole test: to queue one candidate takes milliseconds, on a busy machine tens of
	// milliseconds.
	ctx, cancel := context.WithTimeout(context.Background(), 5*etcdtest.Patience)
	t.Cleanup(cancel)
	for i, p := range people {
		p.result = p.QueueUnder(ctx, t)
		if i > 0 {
			ev := etcdtest.Take(t, p.Waiting, "its wait")
			require.Equal(t, people[i-1].Candidate.Key(), ev.Predecessor.Key)
			awaitWatch(t, &p.rec, ev.Predecessor.Key) // before the next change, so that one read is enough
			if i > 16 {                               // the earlier ones have read the queue itself
				etcdtest.Eventually(t, func() bool { return p.rec.Count("Range") > 0 }, "a read of the predecessor's key, which the pointer named")
			}
		}
		awaitWatch(t, &p.rec, p.Candidate.Key())
	}
	return people
}

// G5: candidates win in the order of their create revisions; each waits for exactly one key; one
// departure is one event for one waiter, which then reads at most once. If its predecessor was the
// leader, it reads single keys and does not scan the queue. Fails if waiters watch the leader or the
// range, if each departure wakes each waiter, if waiters overtake each other, or if the winner reads
// which candidate is the eldest.
func TestG5OneKeyOneWaiter(t *testing.T) {
	people := herd(t, 200)
	leader := electiontest.Wins(t, people[0].result)
	for _, p := range people {
		p.rec.Reset()
	}
	// Waiters in the middle leave: the one behind each moves up.
	gone := []int{10, 40}
	for _, i := range gone {
		require.NoError(t, people[i].Candidate.Withdraw(etcdtest.Context(t)))
		electiontest.Fails(t, people[i].result, eldest.ErrWithdrawn)
		ev := etcdtest.Take(t, people[i+1].Waiting, "its new predecessor")
		require.Equal(t, people[i-1].Candidate.Key(), ev.Predecessor.Key)
		awaitWatch(t, &people[i+1].rec, people[i-1].Candidate.Key())
	}
	requireWoken(t, people, []int{11, 41}, gone)
	people = slices.Delete(slices.Delete(people, 40, 41), 10, 11)

	// The departures of leaders follow one another, so that a late event of one would be counted with
	// the next. The last of the leaders knows all its elders.
	var left, woken []int
	for i := range 15 {
		require.NoError(t, leader.Resign(etcdtest.Context(t)))
		next := electiontest.Wins(t, people[i+1].result)
		require.Greater(t, next.Token(), leader.Token())
		leader, left, woken = next, append(left, i), append(woken, i+1)
	}
	requireWoken(t, people, woken, left)
	leaveAll(people)
}

// requireWoken requires that some participants received one event since the last check and read at
// most once, and that no other received an event or sent a request. Those that have left have sent
// one request for that.
func requireWoken(t *testing.T, people []*counted, woken, left []int) {
	t.Helper()
	for i, p := range people {
		events := 0
		for _, ev := range p.rec.Events() {
			if string(ev.Kv.Key) != p.Candidate.Key() {
				events++
			}
		}
		all, passes := reads(&p.rec)
		if slices.Contains(left, i) {
			all--
		}
		if slices.Contains(woken, i) {
			require.Equal(t, 1, events, "events delivered to participant %d", i)
			require.LessOrEqual(t, all, 1, "requests of participant %d after the event: %v", i, p.rec.Methods())
			if i < 17 { // it knew all its elders
				require.Zero(t, passes, "participant %d passed over the whole queue", i)
			}
		} else {
			require.Zero(t, events+all, "participant %d was disturbed: %v", i, p.rec.Calls())
		}
		p.rec.Reset()
	}
}

// leaveAll has all participants leave concurrently; the tests' clean-up would do so one by one.
func leaveAll(people []*counted) {
	var leaving sync.WaitGroup
	for _, p := range people {
		leaving.Go(p.Leave)
	}
	leaving.Wait()
}
