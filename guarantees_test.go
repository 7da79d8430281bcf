package eldest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// G5: candidates win in create-revision order; each waits on exactly one key; one
// departure wakes exactly one waiter. Fails when a waiter watches the range or the
// leader, and when waiters overtake each other.
func TestG5OneKeyOneWaiter(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	const n = 6
	var people [n]*participant
	var results [n]<-chan outcome
	var recs [n]etcdtest.Recorder
	for i := range people {
		people[i] = join(t, c.Client(t, recs[i].Attach), name, still)
		results[i] = people[i].queue(t, etcdtest.Context(t))
		if i > 0 {
			ev := etcdtest.Take(t, people[i].waiting, "whom it waits for")
			require.Equal(t, people[i-1].candidate.Key(), ev.Predecessor.Key)
			awaitWatch(t, &recs[i], people[i-1].candidate.Key())
		}
	}
	leader := wins(t, results[0])
	for i := 1; i < n; i++ {
		require.Empty(t, people[i].waiting, "somebody waits for a second key")
	}

	// A waiter in the middle leaves: the one behind it moves up, nobody else
	// hears of it.
	require.NoError(t, people[2].candidate.Withdraw(etcdtest.Context(t)))
	fails(t, results[2], eldest.ErrWithdrawn)
	ev := etcdtest.Take(t, people[3].waiting, "its new predecessor")
	require.Equal(t, people[1].candidate.Key(), ev.Predecessor.Key)
	awaitWatch(t, &recs[3], people[1].candidate.Key())

	// Then the leaders resign, one after another: the order is kept.
	for _, i := range []int{1, 3, 4, 5} {
		require.NoError(t, leader.Resign(etcdtest.Context(t)))
		next := wins(t, results[i])
		require.Greater(t, next.Token(), leader.Token())
		leader = next
	}
	// One departure, one event for one waiter: 3 has seen two (2 and 1), the
	// others one each.
	for i, want := range [n]int{1: 1, 3: 2, 4: 1, 5: 1} {
		if i == 0 || i == 2 {
			continue // they left; their own departure may be an event to them
		}
		foreign := 0
		for _, ev := range recs[i].Events() {
			if string(ev.Kv.Key) != people[i].candidate.Key() {
				foreign++
			}
		}
		require.Equal(t, want, foreign, "events delivered to participant %d", i)
	}
}

// G6: an observer never reports a token lower than one it has reported; it may skip
// tenures; it reports "nobody" and "I do not know". Fails when "unknown" is reported
// as "nobody", or as the last leader that was known.
func TestG6Observer(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	o := watchElection(t, host.Client(t), name)
	sub := o.Subscribe()
	var newest eldest.Token
	// Between what it waits for, a busy machine may be taken for a silent etcd.
	next := func(want func(eldest.State) bool) eldest.State {
		t.Helper()
		for {
			state, err := sub.Next(etcdtest.Context(t))
			require.NoError(t, err)
			require.GreaterOrEqual(t, state.Revision, int64(0))
			if state.Kind == eldest.Led {
				require.GreaterOrEqual(t, state.Leader.Token, newest, "a token went back")
				newest = state.Leader.Token
			}
			require.Equal(t, state.Kind == eldest.Unknown, state.Reason != nil)
			if want(state) {
				return state
			}
		}
	}
	nobody := func(s eldest.State) bool { return s.Kind == eldest.Nobody }
	unknown := func(s eldest.State) bool { return s.Kind == eldest.Unknown }
	leads := func(token eldest.Token, value string) func(eldest.State) bool {
		return func(s eldest.State) bool {
			return s.Kind == eldest.Led && s.Leader.Token == token && string(s.Leader.Value) == value
		}
	}
	next(nobody)
	a, b := join(t, c.Client(t), name), join(t, c.Client(t), name)
	first := a.lead(t)
	next(leads(first.Token(), ""))
	require.NoError(t, first.Proclaim(etcdtest.Context(t), []byte("value\x00\xff")))
	next(leads(first.Token(), "value\x00\xff"))

	waits := b.queue(t, etcdtest.Context(t))
	host.Cut()
	require.ErrorIs(t, next(unknown).Reason, eldest.ErrSilent)
	var state eldest.State
	etcdtest.Eventually(t, func() bool { state = o.State(); return unknown(state) }, "it goes on not knowing")
	require.Zero(t, state.Leader, "a leader in an unknown state")
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	second := wins(t, waits)
	host.Mend()
	next(leads(second.Token(), ""))
	require.NoError(t, second.Resign(etcdtest.Context(t)))
	next(nobody)
}

// G7: the user's lead function never overlaps itself in one process, even when it
// ignores its context and the same candidate wins again. Fails when Lead runs the
// function of a new tenure beside that of the old one.
func TestG7LeadNeverOverlaps(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	p := join(t, c.Client(t), etcdtest.Election(t))
	var running, calls, overlaps atomic.Int32
	enter := func() {
		calls.Add(1)
		if running.Add(1) > 1 {
			overlaps.Add(1)
		}
	}
	started, stubborn := make(chan struct{}), make(chan struct{})
	first := p.lead(t)
	done := make(chan error, 2)
	go func() {
		done <- first.Lead(etcdtest.Context(t), func(ctx context.Context) error {
			enter()
			defer running.Add(-1)
			close(started)
			<-ctx.Done()
			<-stubborn // it does not care
			return nil
		})
	}()
	etcdtest.Take(t, started, "the lead function")
	_, err := c.Client(t).Delete(etcdtest.Context(t), first.Key())
	require.NoError(t, err)
	ended(t, first, eldest.ErrDeposed)
	second := p.lead(t)
	require.Greater(t, second.Token(), first.Token())
	asked := make(chan struct{})
	go func() {
		close(asked)
		done <- second.Lead(etcdtest.Context(t), func(context.Context) error {
			enter()
			defer running.Add(-1)
			return nil
		})
	}()
	etcdtest.Take(t, asked, "the second call")
	// The tenure lasts, the function is not called; a round trip later neither.
	require.NoError(t, second.Proclaim(etcdtest.Context(t), []byte("x")))
	require.EqualValues(t, 1, calls.Load())
	close(stubborn)
	require.NoError(t, etcdtest.Take(t, done, "the first function"))
	require.NoError(t, etcdtest.Take(t, done, "the second function"))
	require.EqualValues(t, 2, calls.Load())
	require.Zero(t, overlaps.Load())
}

var errMine = errors.New("mine")

// G8: nothing is left behind: whatever ends a campaign, its key is removed, at the
// latest with the lease. Fails when a way out forgets the key; the next in line
// would wait behind a ghost that the session keeps alive.
func TestG8NothingIsLeft(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	// Each way out begins with a candidate that waits on a host of its own.
	ways := map[string]func(t *testing.T, p *participant, h *etcdtest.Host, cancel context.CancelCauseFunc, result <-chan outcome){
		"context": func(t *testing.T, _ *participant, _ *etcdtest.Host, cancel context.CancelCauseFunc, result <-chan outcome) {
			cancel(errMine)
			fails(t, result, errMine)
		},
		"context while cut off": func(t *testing.T, _ *participant, h *etcdtest.Host, cancel context.CancelCauseFunc, result <-chan outcome) {
			h.Cut()
			begin := time.Now()
			cancel(errMine)
			fails(t, result, errMine)
			require.Less(t, time.Since(begin), 15*time.Second, "it waited for etcd")
			h.Mend()
		},
		"withdraw": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.candidate.Withdraw(etcdtest.Context(t)))
			fails(t, result, eldest.ErrWithdrawn)
		},
		"withdraw, its reply lost": func(t *testing.T, p *participant, h *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			lost := h.SwallowNextReply(etcdtest.Containing(p.candidate.Key()))
			require.NoError(t, p.candidate.Withdraw(etcdtest.Context(t)))
			require.NoError(t, lost.Wait(etcdtest.Context(t)))
			fails(t, result, eldest.ErrWithdrawn)
		},
		"close": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.candidate.Close(etcdtest.Context(t)))
			fails(t, result, eldest.ErrClosed)
		},
		"close of the session": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.session.Close(etcdtest.Context(t)))
			fails(t, result, eldest.ErrClosed)
		},
		"abandoned session": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			p.session.Abandon()
			fails(t, result, eldest.ErrClosed)
		},
		"cut off until the lease is over": func(t *testing.T, p *participant, h *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			h.Cut()
			fails(t, result, eldest.ErrSessionLost)
			h.Mend()
		},
	}
	// Where the lease takes the key with it that is waited for; else it must not end before.
	ttls := map[string]time.Duration{"abandoned session": 10 * time.Second, "cut off until the lease is over": 6 * time.Second}
	for way, leave := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			first := join(t, c.Client(t), name)
			tenure := first.lead(t)
			host := c.Host(t)
			p := join(t, host.Client(t), name, func(l *lease.Config, e *election.Config) {
				l.TTL, e.Timeout = cmp.Or(ttls[way], quiet), 20*time.Second
			})
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			result := p.queue(t, ctx)
			etcdtest.Take(t, p.waiting, "its wait")
			last := join(t, c.Client(t), name)
			behind := last.queue(t, etcdtest.Context(t))
			leave(t, p, host, cancel, result)
			reader := c.Client(t)
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, reader, name)) == 2 }, "the key is gone")
			require.NoError(t, tenure.Resign(etcdtest.Context(t)))
			wins(t, behind)
		})
	}
}

// lateKV loses the registration in a network that delivers it when the test says so:
// every transaction "times out", and the first one is carried out by arrive.
type lateKV struct {
	clientv3.KV
	mu    sync.Mutex
	lost  bool
	first *etcdtest.Txn
}

func newLateKV(kv clientv3.KV) *lateKV {
	late := &lateKV{}
	late.KV = etcdtest.WithTxns(kv, late.commit)
	return late
}

func (kv *lateKV) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	kv.mu.Lock()
	lost := kv.lost
	if lost && kv.first == nil {
		kv.first = t
	}
	kv.mu.Unlock()
	if lost {
		return nil, context.DeadlineExceeded
	}
	return t.Commit(t.Context)
}

func (kv *lateKV) lose(lost bool) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.lost = lost
}

func (kv *lateKV) arrive() error {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	_, err := kv.first.Commit(context.WithoutCancel(kv.first.Context))
	return err
}

func (kv *lateKV) sent() bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	return kv.first != nil
}

// G8 for the registration itself: its outcome is unknown when the campaign is given
// up, and it is carried out even later than that. Fails when only what is there at
// the end of the campaign is cleaned up.
func TestG8LateRegistration(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	cli := c.Client(t)
	kv := newLateKV(cli)
	p := join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.KV = kv })
	kv.lose(true)
	ctx, cancel := context.WithCancelCause(context.Background())
	result := p.campaign(ctx)
	etcdtest.Eventually(t, kv.sent, "the registration is under way")
	cancel(errMine)
	fails(t, result, errMine)
	kv.lose(false)
	seen := c.Client(t).Watch(etcdtest.Context(t), p.candidate.Key(), clientv3.WithCreatedNotify())
	require.True(t, etcdtest.Take(t, seen, "a watch").Created)
	require.NoError(t, kv.arrive())
	require.True(t, etcdtest.Take(t, seen, "the late registration").Events[0].IsCreate())
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, cli, name)) == 0 }, "no ghost")
	join(t, c.Client(t), name).lead(t)
	require.NoError(t, p.session.Err(), "the session was given up for it")
}

// awaitWatch waits until etcd has put a client's watch of a key in place.
func awaitWatch(t *testing.T, rec *etcdtest.Recorder, key string) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { return slices.Contains(rec.Placed(), key) }, "a watch of %q", key)
}

// G8 for watches: whoever has left has none open, whichever way he left, and though his
// client goes on. (A client that ends takes all its watches with it.)
//
// Broken by a watch that does not end with what it is for.
func TestG8NoWatchIsLeft(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	cli := c.Client(t)
	open := func() (watches int) {
		resp, err := http.Get(c.Endpoints()[0] + "/metrics")
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		metrics, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		_, count, found := strings.Cut(string(metrics), "\netcd_debugging_mvcc_watcher_total ")
		require.True(t, found)
		_, err = fmt.Sscan(count, &watches)
		require.NoError(t, err)
		return watches
	}
	leader, waiter, heir := join(t, cli, name), join(t, cli, name), join(t, cli, name)
	tenure := leader.lead(t)
	gone := waiter.queue(t, etcdtest.Context(t))
	etcdtest.Take(t, waiter.waiting, "its wait")
	next := heir.queue(t, etcdtest.Context(t))
	etcdtest.Take(t, heir.waiting, "its wait")
	etcdtest.Eventually(t, func() bool { return open() == 5 }, "three watch their keys, and two those of others")

	require.NoError(t, waiter.candidate.Withdraw(etcdtest.Context(t)))
	fails(t, gone, eldest.ErrWithdrawn)
	etcdtest.Eventually(t, func() bool { return open() == 3 }, "who has left watches nothing")
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	won := wins(t, next)
	_, err := c.Client(t).Delete(etcdtest.Context(t), won.Key())
	require.NoError(t, err)
	etcdtest.Take(t, won.Done(), "the end of the tenure")
	for _, p := range []*participant{leader, waiter, heir} {
		p.leave()
	}
	etcdtest.Eventually(t, func() bool { return open() == 0 }, "no watch is open any more")
}
