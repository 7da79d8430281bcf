package regressions

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// deadContext returns a context that has already ended.
func deadContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errMine)
	return ctx
}

// Row 6 (etcd #22123). Resign with a context that has ended, then again with a live one. In other
// implementations the first call discards the leadership, so the second one does nothing and the
// key stays as long as the session. In Eldest the second call resigns; the leading context ends
// with the first call.
//
// Fails when Leadership.Resign returns nil, without waiting for the deletion, for a tenure that has
// already ended.
func TestRegression06_ResignWithDeadContextFirst(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	p := join(t, host.Client(t), name)
	leader := p.Lead(t)
	host.Hold(etcdtest.Inbound) // nothing in the background can help the first call
	require.ErrorIs(t, leader.Resign(deadContext()), errMine)
	require.ErrorIs(t, leader.Err(), eldest.ErrResigned)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, leader.Resign(short), context.DeadlineExceeded, "it says it resigned, and cannot know")
	require.Len(t, queueOf(t, c, name), 1)
	host.Mend()
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	require.Empty(t, queueOf(t, c, name))
	require.NoError(t, leader.Resign(etcdtest.Context(t)), "a third one is harmless")
	p.Lead(t)
}

// Row 7. The context is cancelled while etcd cannot be reached. In other implementations the call
// blocks in its clean-up, without a bound. In Eldest it returns at once, and the clean-up continues
// in the background, as long as the session lives.
//
// Fails when a campaign that is cancelled removes its key before it returns.
func TestRegression07_CancelledWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, back := range []bool{true, false} {
		t.Run(map[bool]string{true: "and back", false: "for good"}[back], func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).Lead(t)
			host := c.Host(t)
			defer host.Mend()
			life := quiet
			if !back {
				life = 10 * time.Second // the key is deleted when it ends
			}
			p := join(t, host.Client(t), name, ttl(life))
			ctx, cancel := context.WithCancelCause(context.Background())
			require.NoError(t, etcdtest.Err(p.Candidate.Register(ctx)))
			result := electiontest.After(func() (*election.Leadership, error) { return p.Candidate.Await(ctx) })
			etcdtest.Take(t, p.Waiting, "its wait")
			behind := join(t, c.Client(t), name).Queue(t)
			host.Cut()
			begin := time.Now()
			cancel(errMine)
			o := electiontest.Fails(t, result)
			require.ErrorIs(t, o.Reason, errMine)
			require.Less(t, o.At.Sub(begin), atOnce, "the caller waited for the clean-up")
			if back {
				host.Mend()
			} // otherwise the key is deleted when the lease expires
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "its key is gone")
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			electiontest.Wins(t, behind)
		})
	}
}

// Row 20. Proclaim after the loss, twice. In other implementations the first call returns "not
// leader" and the second one panics, or writes. In Eldest each call returns the same typed error.
//
// Fails when Leadership.Proclaim returns etcd's result for the key instead of the reason why the
// tenure ended.
func TestRegression20_ProclaimAfterLoss(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for way, reason := range map[string]error{
		"deposed": eldest.ErrDeposed, "resigned": eldest.ErrResigned, "session closed": eldest.ErrClosed,
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			p := join(t, c.Client(t), name)
			leader := p.Lead(t)
			switch way {
			case "deposed":
				require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), leader.Key())))
			case "resigned":
				require.NoError(t, leader.Resign(etcdtest.Context(t)))
			default:
				require.NoError(t, p.Session.Close(etcdtest.Context(t)))
			}
			etcdtest.Take(t, leader.Done(), "the end of the tenure")
			first := leader.Proclaim(etcdtest.Context(t), []byte("late"))
			second := leader.Proclaim(etcdtest.Context(t), []byte("late"))
			for _, err := range []error{first, second} {
				require.ErrorIs(t, err, eldest.ErrNotLeading, "what Proclaim says after the tenure")
				require.ErrorIs(t, err, reason, "why Proclaim says that the tenure ended")
				var op *eldest.OpError
				require.ErrorAs(t, err, &op)
				require.Equal(t, "proclaim", op.Op)
			}
			require.Equal(t, first.Error(), second.Error())
			require.Empty(t, queueOf(t, c, name))
		})
	}
}

// Row 21. The leader campaigns again, with a context that ends. In other implementations the
// clean-up of that campaign deletes the leader's key. In Eldest the call is refused and the
// leadership is unchanged.
//
// Fails when election.Candidate.begin lets a leader campaign.
func TestRegression21_LeaderCampaignsAgain(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	p := join(t, c.Client(t), name)
	leader := p.Lead(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := map[string]func() error{
		"campaign": func() error { _, err := p.Candidate.Campaign(ctx); return err },
		"try":      func() error { _, err := p.Candidate.Try(ctx); return err },
		"register": func() error { _, err := p.Candidate.Register(ctx); return err },
		"await":    func() error { _, err := p.Candidate.Await(ctx); return err },
	}
	for range 2 {
		for call, f := range calls {
			result := etcdtest.Go(func() error { return f() })
			require.ErrorIs(t, etcdtest.Take(t, result, "the end of "+call), eldest.ErrLeading, call)
		}
		cancel() // the second time with a context that has ended
	}
	// A second candidate on the same session would have the same key.
	twin := join(t, p.Client, name, func(_ *lease.Config, e *election.Config) { e.Session = p.Session })
	require.ErrorIs(t, etcdtest.Err(twin.Candidate.Campaign(etcdtest.Context(t))), eldest.ErrCampaigning)
	require.NoError(t, twin.Candidate.Close(etcdtest.Context(t)))
	require.NoError(t, leader.Err())
	require.True(t, leader.Holds(0))
	require.Equal(t, []string{leader.Key()}, queueOf(t, c, name))
	require.NoError(t, leader.Proclaim(etcdtest.Context(t), []byte("still here")))
}

// documented are the errors of a candidate that several goroutines use at once.
var documented = []error{
	eldest.ErrCampaigning, eldest.ErrLeading, eldest.ErrNotRegistered, eldest.ErrWithdrawn, eldest.ErrResigned,
	eldest.ErrClosed, eldest.ErrNotLeading, eldest.ErrNotElected, eldest.ErrOutcomeUnknown,
	context.DeadlineExceeded,
}

// Row 24 (etcd #7547). Campaign, Resign, Withdraw, Proclaim and Close at once on one handle. In
// other implementations: a data race, a nil dereference, a key that stays. In Eldest each call has
// a documented result, there are never two tenures at once, and Close leaves nothing.
//
// Fails, under the race detector, when the candidate's state is read without the mutex; without it,
// when Close ignores a campaign that is about to win.
func TestRegression24_EverythingAtOnce(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for round := range 8 {
		name := etcdtest.Election(t)
		rival := join(t, c.Client(t), name)
		p := join(t, c.Client(t), name)
		var mu sync.Mutex
		var tenure *election.Leadership
		robbed, allowed := round%2 == 1, documented
		if robbed {
			allowed = append(slices.Clone(documented), eldest.ErrDeposed)
		}
		check := func(err error) {
			if err == nil {
				return
			}
			for _, d := range allowed {
				if errors.Is(err, d) {
					return
				}
			}
			assert.NoError(t, err, "an undocumented error")
		}
		won := func(l *election.Leadership, err error) {
			check(err)
			assert.NotEqual(t, l == nil, err == nil, "a Leadership %v beside the error %v", l, err)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			assert.True(t, tenure == nil || tenure.Token() == l.Token() || tenure.Err() != nil || l.Err() != nil, "two tenures at once")
			tenure = l
		}
		var hammers sync.WaitGroup
		for g := range 6 {
			r := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			hammers.Go(func() {
				for range 60 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(20))*time.Millisecond)
					switch r.IntN(7) {
					case 0, 1:
						won(p.Candidate.Campaign(ctx))
					case 2:
						won(p.Candidate.Try(ctx))
					case 3:
						check(p.Candidate.Withdraw(ctx))
					case 4:
						check(p.Candidate.Proclaim(ctx, []byte{byte(g)}))
					case 5:
						_, err := p.Candidate.Register(ctx)
						check(err)
						won(p.Candidate.Await(ctx))
					default:
						mu.Lock()
						l := tenure
						mu.Unlock()
						if l != nil {
							check(l.Resign(ctx))
						}
					}
					cancel()
				}
			})
		}
		if robbed {
			hammers.Go(func() { // an operator deletes its key
				for range 10 {
					assert.NoError(t, etcdtest.Err(rival.Client.Delete(etcdtest.Context(t), p.Candidate.Key())))
				}
			})
		}
		hammers.Go(func() { // another candidate registers and leaves again and again
			for range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				l, err := rival.Candidate.Campaign(ctx)
				check(err)
				if err == nil {
					assert.NoError(t, l.Resign(etcdtest.Context(t)))
				}
				cancel()
			}
		})
		if round%4 == 3 {
			hammers.Go(func() { check(p.Candidate.Close(etcdtest.Context(t))) })
		}
		hammers.Wait()
		require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
		require.NoError(t, rival.Candidate.Close(etcdtest.Context(t)))
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 0 }, "nothing is left in round %d", round)
	}
}

// Row 24, Close while the registration is in progress, lost or late: the campaign ends at once, and
// when Close returns there is neither key nor tenure. In other implementations the campaign wins
// after the Close.
//
// Fails when Close does not interrupt the call that registers.
func TestRegression24_CloseWhileRegistering(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for what, d := range map[string]etcdtest.Direction{"request held": etcdtest.Inbound, "reply held": etcdtest.Outbound} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			host := c.Host(t)
			defer host.Mend()
			p := join(t, host.Client(t), name)
			host.Hold(d)
			result := p.Campaign(etcdtest.Context(t))
			if d == etcdtest.Outbound {
				etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is written")
			} else {
				etcdtest.Eventually(t, func() bool { return host.Stats().Held.Inbound > 0 }, "the registration is under way")
			}
			closed := make(chan error, 1)
			begin := time.Now()
			go func() { closed <- p.Candidate.Close(etcdtest.Context(t)) }()
			o := electiontest.Fails(t, result)
			require.ErrorIs(t, o.Reason, eldest.ErrClosed, "why the campaign ended")
			require.Less(t, o.At.Sub(begin), atOnce, "the campaign went on beside Close")
			host.Mend()
			require.NoError(t, etcdtest.Take(t, closed, "the end of Close"))
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 0 }, "nothing is left")
		})
	}
}
