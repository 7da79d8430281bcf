package security

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// kind is a kind of etcd's tokens, with their lifetime, and the time after which an unused token
// has certainly expired.
type kind struct {
	tokens     func(*etcdtest.Authority) string
	life, over time.Duration
}

var kinds = map[string]kind{
	"simple": {simple, time.Second, 2500 * time.Millisecond},                      // etcd scans for expired ones once a second
	"signed": {signed(2 * time.Second), 2 * time.Second, 2200 * time.Millisecond}, // they end at whole seconds
}

// guest is a participant with a client, and so a token, of its own.
type guest struct {
	*electiontest.Participant
	refused *atomic.Int64 // how often its token was invalid
}

// stand makes the guest a candidate, with a session that sends nothing for longer than any token
// lives, so that no request gets a new token.
func (f *fortress) stand(value string) *guest {
	f.t.Helper()
	refused := new(atomic.Int64)
	cli := f.client("node", "somebody", refusals(refused))
	return &guest{electiontest.Join(f.t, cli, svc, func(_ *lease.Config, e *election.Config) {
		e.Value, e.WatchCheck = []byte(value), -1
	}), refused}
}

// watcher is an observer of the election with a client, and so a token, of its own.
type watcher struct {
	t       *testing.T
	client  *clientv3.Client
	states  *observe.Subscription
	refused *atomic.Int64 // how often its token was invalid
}

// watch starts an observer, which sends nothing either.
func (f *fortress) watch() *watcher {
	f.t.Helper()
	w := &watcher{t: f.t, refused: new(atomic.Int64)}
	w.client = f.client("watcher", "somebody", refusals(w.refused))
	o, err := observe.New(observe.Config{Election: svc, KV: w.client, Watcher: w.client, Options: observe.Options{WatchCheck: -1}})
	require.NoError(f.t, err)
	f.t.Cleanup(o.Close)
	w.states = o.Subscribe()
	return w
}

// sees waits until the observer receives a leader with a value; there is always a leader.
func (w *watcher) sees(value string) {
	w.t.Helper()
	for {
		s, err := w.states.Next(etcdtest.Context(w.t))
		require.NoError(w.t, err)
		require.NotEqual(w.t, eldest.Nobody, s.Kind)
		if s.Kind == eldest.Led && string(s.Leader.Value) == value {
			return
		}
	}
}

// expired requires that etcd has refused a token of each of them.
func expired(t *testing.T, refused map[string]*atomic.Int64) {
	t.Helper()
	for name, n := range refused {
		require.Positive(t, n.Load(), "INVALID: the token of the %s never expired", name)
	}
}

// left requires that the guests leave nothing but some keys.
func (f *fortress) left(keys int, guests ...*guest) {
	f.t.Helper()
	for _, g := range guests {
		require.NoError(f.t, g.Candidate.Close(etcdtest.Context(f.t)))
		require.NoError(f.t, g.Session.Close(etcdtest.Context(f.t)))
	}
	left := f.contents()
	require.Len(f.t, left.keys, keys)
	require.Empty(f.t, left.leases)
}

// Row 25 of the regressions (etcd #17623). Tokens of both kinds expire while a leader leads, a
// candidate waits and an observer watches: simple tokens, whose lifetime is extended while they are
// used, of participants that send nothing; and signed ones, which always end. No participant is
// affected, and all later operations work as usual.
func TestTokensExpireDuringAWait(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		expire := func() { time.Sleep(kind.over) } // the fault itself
		start := func(t *testing.T) *fortress {
			t.Parallel()
			f := newFortress(t, kind.tokens, kind.life)
			f.user("node", on(svc, readWrite), permission{from: "data", may: readWrite})
			f.user("watcher", on(svc, read))
			return f
		}
		t.Run(name+"/queue", func(t *testing.T) {
			f := start(t)
			first, second, third := f.stand("first"), f.stand("second"), f.stand("third")
			l := first.Lead(t)
			wins := map[*guest]chan *election.Leadership{}
			for _, g := range []*guest{second, third} {
				require.NoError(t, etcdtest.Err(g.Candidate.Register(etcdtest.Context(t))))
				wins[g] = make(chan *election.Leadership, 1)
				go func() {
					l, err := g.Candidate.Await(context.WithoutCancel(t.Context()))
					if (g == second) != errors.Is(err, eldest.ErrWithdrawn) || g == third && err != nil {
						t.Errorf("the wait ended: %v", err)
					}
					wins[g] <- l
				}()
			}
			w := f.watch()
			w.sees("first")
			expire()
			require.True(t, l.Holds(0))
			// A candidate in the middle leaves: the last one needs a new watch, on a stream that
			// was opened with a token which has expired.
			require.NoError(t, second.Candidate.Withdraw(etcdtest.Context(t)))
			require.Nil(t, etcdtest.Take(t, wins[second], "the end of its wait"))
			expire()
			expire() // longer than a refusal may last before it ends the wait
			require.NoError(t, l.Resign(etcdtest.Context(t)))
			next := etcdtest.Take(t, wins[third], "the win")
			require.Greater(t, next.Token(), l.Token())
			w.sees("third")
			require.NoError(t, etcdtest.Err(observe.LeaderOf(etcdtest.Context(t), w.client, svc)))
			expired(t, map[string]*atomic.Int64{"leader": first.refused, "next": third.refused, "observer": w.refused})
			f.left(0, first, second, third)
		})
		t.Run(name+"/leader", func(t *testing.T) {
			f := start(t)
			first := f.stand("first")
			l := first.Lead(t)
			w := f.watch()
			w.sees("first")
			expire()
			require.True(t, l.Holds(0))
			require.NoError(t, l.Proclaim(etcdtest.Context(t), []byte("news")))
			w.sees("news")
			expire()
			require.NoError(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "data", "1")), "a guarded write")
			expire()
			f.left(1, first)
			expired(t, map[string]*atomic.Int64{"leader": first.refused})
		})
	}
}

// A session that is renewed all the time outlives its token, since renewals need none.
func TestTokensExpireUnderASession(t *testing.T) {
	t.Parallel()
	life := kinds["signed"].life
	f := newFortress(t, kinds["signed"].tokens, life)
	f.user("node", on(svc, readWrite))
	cli := f.client("node", "somebody")
	renewed := make(chan struct{}, 1000)
	p := electiontest.Join(t, cli, svc, func(l *lease.Config, _ *election.Config) {
		l.TTL = 10 * time.Second
		l.Renewal = func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: life / 4, Timeout: 3 * time.Second}
		}
		l.Hooks.Renewed = func(lease.RenewedEvent) { renewed <- struct{}{} }
	})
	l := p.Lead(t)
	stop := context.AfterFunc(l.Context(), func() {})
	for begin := time.Now(); time.Since(begin) < 2*life; {
		etcdtest.Take(t, renewed, "a renewal")
	}
	require.True(t, l.Holds(0))
	require.True(t, stop(), "it was lost on the way")
	require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
	require.NoError(t, p.Session.Close(etcdtest.Context(t)))
}
