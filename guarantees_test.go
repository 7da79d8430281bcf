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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// G6 (and row 22 of the regressions): an observer never reports a token lower than one that it has
// reported; it may skip tenures; it reports "nobody" and "unknown". In other implementations an
// observer of an empty election reports nothing, one of quick successions misses the last of them, a
// compaction ends it, and a partition looks like a leader that stays.
//
// Fails if "unknown" is reported as "nobody" or as the last leader that was known, if nothing is
// reported for an empty election, or if a compaction ends a watch.
func TestG6Observer(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	host := c.Host(t)
	o := watchElection(t, host.Client(t), name)
	sub := o.Subscribe()
	var newest eldest.Token
	// Between these states, etcd may seem unavailable on a busy machine.
	next := func(what string, want func(eldest.State) bool) eldest.State {
		t.Helper()
		for {
			state, err := sub.Next(etcdtest.Context(t))
			require.NoError(t, err, what)
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
	kind := func(k eldest.Kind) eldest.State {
		t.Helper()
		return next(k.String(), func(s eldest.State) bool { return s.Kind == k })
	}
	leads := func(token eldest.Token, value string) {
		t.Helper()
		next("a leader", func(s eldest.State) bool {
			return s.Kind == eldest.Led && s.Leader.Token == token && string(s.Leader.Value) == value
		})
	}
	kind(eldest.Nobody)
	a, b := electiontest.Join(t, c.Client(t), name), electiontest.Join(t, c.Client(t), name)
	for range 15 { // quick successions
		for _, p := range []*participant{a, b} {
			require.NoError(t, p.Lead(t).Resign(etcdtest.Context(t)))
		}
	}
	first := a.Lead(t)
	leads(first.Token(), "")
	require.NoError(t, first.Proclaim(etcdtest.Context(t), []byte("value\x00\xff")))
	leads(first.Token(), "value\x00\xff")

	// The history is compacted while the connection is down.
	host.Refuse()
	host.Reset()
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	first = a.Lead(t)
	require.NoError(t, etcdtest.Err(c.Compact(etcdtest.Context(t))))
	host.Mend()
	leads(first.Token(), "value\x00\xff")

	waits := b.Queue(t)
	host.Cut()
	require.ErrorIs(t, kind(eldest.Unknown).Reason, eldest.ErrUnavailable)
	var state eldest.State
	etcdtest.Eventually(t, func() bool { state = o.State(); return state.Kind == eldest.Unknown }, "it goes on not knowing")
	require.Zero(t, state.Leader, "a leader in an unknown state")
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	second := electiontest.Wins(t, waits)
	host.Mend()
	leads(second.Token(), "")
	require.NoError(t, second.Resign(etcdtest.Context(t)))
	kind(eldest.Nobody)
}

// G7: the user's lead function never overlaps itself in one process, even if it ignores its context
// and the same candidate wins again; a tenure that waits for it can end meanwhile. Fails if Lead
// runs the function of a new tenure while that of the old one runs.
func TestG7LeadNeverOverlaps(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	p := electiontest.Join(t, c.Client(t), etcdtest.Election(t))
	var running, calls, overlaps atomic.Int32
	enter := func() {
		calls.Add(1)
		if running.Add(1) > 1 {
			overlaps.Add(1)
		}
	}
	started, stubborn := make(chan struct{}), make(chan struct{})
	first := p.Lead(t)
	done := make(chan error, 2)
	go func() {
		done <- first.Lead(etcdtest.Context(t), func(ctx context.Context) error {
			enter()
			defer running.Add(-1)
			close(started)
			<-ctx.Done()
			<-stubborn // it ignores the end of its context
			return nil
		})
	}()
	etcdtest.Take(t, started, "the lead function")
	require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), first.Key())))
	ended(t, first, eldest.ErrDeposed)
	between, gone := p.Lead(t), make(chan error, 1)
	go func() {
		gone <- between.Lead(etcdtest.Context(t), func(context.Context) error { enter(); return nil })
	}()
	require.NoError(t, between.Resign(etcdtest.Context(t)))
	require.ErrorIs(t, etcdtest.Take(t, gone, "the end of the tenure that waits"), eldest.ErrResigned)
	second := p.Lead(t)
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
	// The tenure continues and the function is not called, not even a round trip later.
	require.NoError(t, second.Proclaim(etcdtest.Context(t), []byte("x")), "the second function did not wait for the first")
	require.EqualValues(t, 1, calls.Load())
	close(stubborn)
	require.NoError(t, etcdtest.Take(t, done, "the first function"))
	require.NoError(t, etcdtest.Take(t, done, "the second function"))
	require.EqualValues(t, 2, calls.Load())
	require.Zero(t, overlaps.Load())
}

var errMine = errors.New("mine")

// G8: whatever ends a campaign, its key is removed, at the latest with the lease. Fails if one of
// these ways leaves the key: the next candidate would wait behind an orphaned key that the session
// keeps alive.
func TestG8NothingIsLeft(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	// In each case a candidate on a host of its own waits at first.
	ways := map[string]func(t *testing.T, p *participant, h *etcdtest.Host, cancel context.CancelCauseFunc, result <-chan outcome){
		"context": func(t *testing.T, _ *participant, _ *etcdtest.Host, cancel context.CancelCauseFunc, result <-chan outcome) {
			cancel(errMine)
			electiontest.Fails(t, result, errMine)
		},
		"withdraw": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.Candidate.Withdraw(etcdtest.Context(t)))
			electiontest.Fails(t, result, eldest.ErrWithdrawn)
		},
		"withdraw, its reply lost": func(t *testing.T, p *participant, h *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			lost := h.SwallowNextReply(etcdtest.Containing(p.Candidate.Key()))
			require.NoError(t, p.Candidate.Withdraw(etcdtest.Context(t)))
			require.NoError(t, lost.Wait(etcdtest.Context(t)))
			electiontest.Fails(t, result, eldest.ErrWithdrawn)
		},
		"close": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
			electiontest.Fails(t, result, eldest.ErrClosed)
		},
		"close of the session": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			require.NoError(t, p.Session.Close(etcdtest.Context(t)))
			electiontest.Fails(t, result, eldest.ErrClosed)
		},
		"abandoned session": func(t *testing.T, p *participant, _ *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			p.Session.Abandon()
			electiontest.Fails(t, result, eldest.ErrClosed)
		},
		"cut off until the lease is over": func(t *testing.T, p *participant, h *etcdtest.Host, _ context.CancelCauseFunc, result <-chan outcome) {
			h.Cut()
			electiontest.Fails(t, result, eldest.ErrSessionLost)
			h.Mend()
		},
	}
	// Short where the test waits for the end of the lease; in the other cases it must not end.
	ttls := map[string]time.Duration{"abandoned session": 6 * time.Second, "cut off until the lease is over": 6 * time.Second}
	for way, leave := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			first := electiontest.Join(t, c.Client(t), name)
			tenure := first.Lead(t)
			host := c.Host(t)
			p := electiontest.Join(t, host.Client(t), name, func(l *lease.Config, e *election.Config) {
				l.TTL, e.Timeout = cmp.Or(ttls[way], electiontest.Quiet), 20*time.Second
			})
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			result := p.QueueUnder(ctx, t)
			etcdtest.Take(t, p.Waiting, "its wait")
			last := electiontest.Join(t, c.Client(t), name)
			behind := last.Queue(t)
			leave(t, p, host, cancel, result)
			reader := c.Client(t)
			etcdtest.Eventually(t, func() bool { return len(electiontest.Keys(t, reader, name)) == 2 }, "the key is gone")
			require.NoError(t, tenure.Resign(etcdtest.Context(t)))
			electiontest.Wins(t, behind)
		})
	}
}

// awaitWatch waits until etcd has created a client's watch of a key.
func awaitWatch(t *testing.T, rec *etcdtest.Recorder, key string) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { return slices.Contains(rec.Placed(), key) }, "a watch of %q", key)
}

// G8 for watches: a candidate that has left has no watch open, however it left, although its client
// remains open. (A client that is closed closes all its watches.)
//
// Fails if a watch does not end with its purpose.
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
		require.NoError(t, etcdtest.Err(fmt.Sscan(count, &watches)))
		return watches
	}
	leader, waiter, heir := electiontest.Join(t, cli, name), electiontest.Join(t, cli, name), electiontest.Join(t, cli, name)
	tenure := leader.Lead(t)
	gone := waiter.Queue(t)
	etcdtest.Take(t, waiter.Waiting, "its wait")
	next := heir.Queue(t)
	etcdtest.Take(t, heir.Waiting, "its wait")
	etcdtest.Eventually(t, func() bool { return open() == 5 }, "three watch their keys, and two those of others")

	require.NoError(t, waiter.Candidate.Withdraw(etcdtest.Context(t)))
	electiontest.Fails(t, gone, eldest.ErrWithdrawn)
	etcdtest.Eventually(t, func() bool { return open() == 3 }, "who has left watches nothing")
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	won := electiontest.Wins(t, next)
	require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), won.Key())))
	etcdtest.Take(t, won.Done(), "the end of the tenure")
	for _, p := range []*participant{leader, waiter, heir} {
		p.Leave()
	}
	etcdtest.Eventually(t, func() bool { return open() == 0 }, "no watch is open any more")
}
