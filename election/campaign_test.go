package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// A key of the candidate's own lease, left over from a process that crashed, is adopted; behind
// another candidate it is given up.
func TestTryWithALeftoverOfOnesOwn(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("now")
	left := func(c *election.Candidate) int64 {
		id, err := keys.Parse(s.Election, c.Key())
		require.NoError(t, err)
		return s.Put(c.Key(), "before", clientv3.WithLease(clientv3.LeaseID(id)))
	}
	token := left(c)
	l, err := c.Try(s.Ctx)
	require.NoError(t, err)
	require.EqualValues(t, token, l.Token())
	require.Equal(t, "now", s.value(c.Key()))

	other := s.candidate("other")
	left(other)
	require.ErrorIs(t, etcdtest.Err(other.Try(s.Ctx)), eldest.ErrNotElected)
	require.Equal(t, []string{c.Key()}, s.Queue(), "nothing is left in the queue")
}

// The context of a campaign bounds the campaign, not the tenure.
func TestContextOfTheCampaignDoesNotEndTheTenure(t *testing.T) {
	s := newEnv(t)
	ctx, cancel := context.WithCancel(s.Ctx)
	l, err := s.candidate("a").Campaign(ctx)
	require.NoError(t, err)
	cancel()
	require.NoError(t, l.Proclaim(s.Ctx, []byte("b")))
	require.NoError(t, l.Err())
}

// A campaign whose context has ended fails, before it begins and between Register and Await, and leaves no key.
func TestCampaignEndsWithItsContext(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("a"))
	b, over := s.candidate("b"), etcdtest.ContextFor(t, 0)
	electiontest.Fails(t, s.campaigning(over, b), context.DeadlineExceeded)
	require.Len(t, s.Queue(), 1)
	s.register(b)
	require.ErrorIs(t, etcdtest.Err(b.Await(over)), context.DeadlineExceeded)
	s.queued(1)
}

// An election loop campaigns again as soon as its tenure ends: the end must not be visible before
// the candidate may campaign again.
func TestCampaignAgainAtOnce(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	for i := range 20 {
		l := s.lead(c)
		if i%2 == 0 {
			s.Remove(c.Key())
		} else {
			go func() { _ = l.Resign(s.Ctx) }()
		}
		get(s, l.Done())
		again, err := c.Campaign(s.Ctx)
		require.NoError(t, err, "round %d", i)
		require.Greater(t, again.Token(), l.Token())
		require.NoError(t, again.Resign(s.Ctx))
	}
}

// resigning returns a leader whose Resign has sent its request, which is held until release is closed.
func (s *env) resigning() (c *election.Candidate, l *election.Leadership, resigned <-chan error, release chan<- struct{}) {
	s.T.Helper()
	c, g := s.gated("v")
	l = s.lead(c)
	sending, release := g.stop()
	resigned = etcdtest.Go(func() error { return l.Resign(s.Ctx) })
	get(s, sending)
	return c, l, resigned, release
}

// Close waits for a Resign that another goroutine has called.
func TestCloseWaitsForAResignation(t *testing.T) {
	s := newEnv(t)
	c, _, resigned, release := s.resigning()

	early, cancel := context.WithTimeout(s.Ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Close(early), context.DeadlineExceeded)
	require.Len(t, s.Queue(), 1)
	close(release)
	require.NoError(t, c.Close(s.Ctx))
	require.Empty(t, s.Queue())
	require.NoError(t, get(s, resigned))
}

// A session that is lost while the winning reply is on its way prevents the win.
func TestSessionLostWhileTheReplyIsOnItsWay(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client)
	c, g := s.gated("v", on(session))
	g.on(nil, func(_ context.Context, err error) error {
		go session.Abandon() // which waits for this request
		get(s, session.Done())
		return err
	})
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrClosed, "a win after the end of the session")
	_, err := c.Campaign(s.Ctx)
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.NotErrorIs(t, err, eldest.ErrLeading)
	require.NoError(t, c.Close(s.Ctx))
	require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
}

// The value can be changed in each phase; the last one proclaimed is the value of the next
// campaign, and the caller may change its slice after a call has returned.
func TestProclaimBeforeAndAfterTheWin(t *testing.T) {
	s := newEnv(t)
	elder := s.lead(s.candidate("elder"))
	value := []byte("registered")
	c := s.candidate("", func(cfg *election.Config) { cfg.Value = value })
	value[0] = 'X'
	place := s.register(c)
	require.Equal(t, "registered", s.value(c.Key()))
	proclaimed := func(proclaim func(context.Context, []byte) error, text string) {
		t.Helper()
		value := []byte(text)
		require.NoError(t, proclaim(s.Ctx, value))
		value[0] = 'X'
		require.Equal(t, text, s.value(c.Key()))
	}
	s.watched(2) // each candidate's own key
	s.Rec.Reset()
	proclaimed(c.Proclaim, "waiting")
	require.Equal(t, []string{"Txn"}, s.Rec.Methods(), "one request")
	require.Equal(t, []string{elder.Key(), c.Key()}, s.Queue(), "its place stays")

	require.NoError(t, elder.Resign(s.Ctx))
	l := s.await(c)
	require.Equal(t, place.Token, l.Token(), "and its token")
	proclaimed(l.Proclaim, "leading")
	proclaimed(c.Proclaim, "by the candidate")
	require.NoError(t, l.Resign(s.Ctx))
	s.lead(c)
	require.Equal(t, "by the candidate", s.value(c.Key()))
}

// After the loss nothing is written, and the error is the same each time, also if the first call
// comes before the watch has reported the loss.
func TestProclaimAfterLoss(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("old", func(cfg *election.Config) { cfg.Watcher = etcdtest.Deaf(s.Client) })
	l := s.lead(c)
	s.Remove(c.Key())
	require.NoError(t, l.Err(), "the watch reports nothing")
	for range 3 {
		s.is(l.Proclaim(s.Ctx, []byte("late")), eldest.ErrDeposed, eldest.ErrNotLeading)
		require.ErrorIs(t, l.Err(), eldest.ErrDeposed, "what was found ends the tenure")
	}
	require.Empty(t, s.Queue())

	l = s.lead(c)
	s.Remove(c.Key())
	for range 3 {
		require.ErrorIs(t, c.Proclaim(s.Ctx, []byte("late")), eldest.ErrDeposed)
	}
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
}

// A candidacy that ends between Register and Await, or was given up: Await returns the reason.
func TestAwaitAfterTheKeyWasRemoved(t *testing.T) {
	s := newEnv(t)
	ended, change := ending()
	c := s.candidate("v", change)
	s.register(c)
	s.Remove(c.Key())
	require.ErrorIs(t, get(s, ended).Cause, eldest.ErrDeposed)
	s.is(etcdtest.Err(c.Await(s.Ctx)), eldest.ErrNotRegistered, eldest.ErrDeposed)
	require.NoError(t, s.lead(c).Resign(s.Ctx))

	s.register(c)
	require.NoError(t, c.Withdraw(s.Ctx))
	require.Empty(t, s.Queue())
	s.is(etcdtest.Err(c.Await(s.Ctx)), eldest.ErrNotRegistered, eldest.ErrWithdrawn)
}

// Close, Withdraw or the end of the context while the winning reply is on its way: a candidate
// whose Close or Withdraw has returned must not lead, and no call blocks.
func TestEndWhileTheReplyOfTheRegistrationIsOnItsWay(t *testing.T) {
	type call = func(*election.Candidate, context.Context) (*election.Leadership, error)
	calls := map[string]call{
		"campaign": (*election.Candidate).Campaign,
		"try":      (*election.Candidate).Try,
		"register": func(c *election.Candidate, ctx context.Context) (*election.Leadership, error) {
			_, err := c.Register(ctx)
			return nil, err
		},
	}
	for name, call := range calls {
		for how, want := range map[string]error{"close": eldest.ErrClosed, "withdraw": eldest.ErrWithdrawn} {
			t.Run(name+" "+how, func(t *testing.T) {
				s := newEnv(t)
				c, g := s.gated("v")
				end, told := c.Withdraw, make(chan struct{})
				if how == "close" {
					end = c.Close
				}
				ended := make(chan error, 1)
				g.on(nil, func(_ context.Context, err error) error {
					go func() { ended <- end(s.Ctx) }()
					<-told // the call has been asked to stop; the reply is read nevertheless
					return err
				})
				l, err := call(c, s.Ctx)
				close(told)
				require.ErrorIs(t, err, want)
				require.Nil(t, l)
				require.NoError(t, get(s, ended))
				require.Empty(t, s.Queue())
			})
		}
	}
}

// A campaign while the key of the last tenure is still being removed waits for the removal and
// registers again: it does not inherit the old token, and does not fail.
func TestCampaignWhileTheLastKeyIsBeingRemoved(t *testing.T) {
	s := newEnv(t)
	c, l, resigned, release := s.resigning()
	next := s.campaigning(s.Ctx, c)
	close(release)
	require.NoError(t, get(s, resigned))
	won := electiontest.Wins(t, next)
	require.Greater(t, won.Token(), l.Token())
}

// A stream that delivers nothing more, with the watch of the predecessor's key or of its own key on
// it, is detected by the liveness check: the watch continues on another stream.
func TestWatchCheckFindsADeafWatch(t *testing.T) {
	for _, role := range []string{"waiter", "leader"} {
		t.Run(role, func(t *testing.T) {
			s := newEnv(t)
			elder := s.lead(s.candidate("elder"))
			w := &standing{Watcher: s.Client}
			c := s.candidate("v", func(cfg *election.Config) {
				cfg.Watcher, cfg.WatchCheck, cfg.Timeout = w, time.Second, 500*time.Millisecond
			})
			waiting := s.campaigning(s.Ctx, c)
			etcdtest.Eventually(t, func() bool { return w.placed.Load() >= 2 }, "it watches its own key and the elder's")
			if role == "waiter" {
				w.stop(s)
			}
			require.NoError(t, elder.Resign(s.Ctx))
			won := electiontest.Wins(t, waiting)
			if role == "leader" {
				w.stop(s)
				s.Remove(c.Key())
				require.ErrorIs(t, s.over(won.Leadership), eldest.ErrDeposed)
			}
			require.Positive(t, w.others.Load(), "on another stream")
		})
	}
}

// standing is a watcher whose first stream delivers nothing more after stop; watches that are
// created on it after that begin at the revision at which it stopped.
type standing struct {
	clientv3.Watcher
	at, placed, others atomic.Int64
}

func (w *standing) stop(s *env) {
	at, err := s.Cluster.Revision(s.Ctx)
	require.NoError(s.T, err)
	w.at.Store(at)
}

func (w *standing) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	events := w.Watcher.Watch(ctx, key, opts...)
	if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get("eldest-stream")) > 0 {
		w.others.Add(1)
		return events
	}
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for resp := range events {
			if at := w.at.Load(); at > 0 {
				if !resp.Created {
					continue
				}
				memetcd.SetHeader(&resp, &etcdserverpb.ResponseHeader{Revision: min(resp.Header.Revision, at)})
			}
			select {
			case out <- resp:
				if resp.Created {
					w.placed.Add(1)
				}
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// Names and keys from outside cannot write to a terminal.
func TestErrorsQuoteNames(t *testing.T) {
	s := newEnv(t)
	s.Election = "\x1b[31mred\n\xff"
	c := s.candidate("v")
	_, err := c.Await(s.Ctx)
	require.NotContains(t, err.Error(), "\x1b")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, s.lead(c).Resign(s.Ctx), "but they are names like any other")
}

// The reply to a proclaim is lost, and the tenure is drained meanwhile: its key exists, with the new
// value.
//
// Fails if the end of the tenure replaces the unknown outcome.
func TestProclaimOfUnknownOutcomeAfterTheEnd(t *testing.T) {
	for name, proclaim := range map[string]func(s *env, c *election.Candidate, l *election.Leadership) error{
		"candidate": func(s *env, c *election.Candidate, _ *election.Leadership) error {
			return c.Proclaim(s.Ctx, []byte("w"))
		},
		"leadership": func(s *env, _ *election.Candidate, l *election.Leadership) error {
			return l.Proclaim(s.Ctx, []byte("w"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			c, g := s.gated("v")
			l := s.lead(c)
			g.on(nil, func(context.Context, error) error { l.Drain(nil); return context.DeadlineExceeded })
			s.is(proclaim(s, c, l), eldest.ErrNotLeading, eldest.ErrDraining, eldest.ErrOutcomeUnknown)
			require.Equal(t, "w", s.value(c.Key()))
		})
	}
}

// slow is a clock whose reading takes a moment.
type slow struct{ lease.Clock }

func (c slow) Now() time.Duration { time.Sleep(time.Millisecond); return c.Clock.Now() }

// Another goroutine registers as soon as a Try has ended.
//
// Fails, in some rounds, if Try leaves the queue although it has none of its own place in it.
func TestRegisterAtTheEndOfATry(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("elder"))
	c := s.candidate("v", on(s.session(s.Client, func(cfg *lease.Config) { cfg.Clock = slow{lease.Monotonic()} })))
	for range 30 {
		tried := etcdtest.Go(func() error { return etcdtest.Err(c.Try(s.Ctx)) })
		time.Sleep(2 * time.Millisecond) // under way
		others := make(chan error, 3)
		for range cap(others) {
			go func() {
				err := eldest.ErrCampaigning
				for errors.Is(err, eldest.ErrCampaigning) && c.Status().Token == 0 {
					_, err = c.Register(s.Ctx)
				}
				others <- err
			}()
		}
		_ = get(s, tried)
		for range cap(others) {
			require.NotErrorIs(t, get(s, others), eldest.ErrNotElected)
		}
		require.NotZero(t, c.Status().Token)
		require.NoError(t, c.Withdraw(s.Ctx))
	}
}

// Await with a context that has ended does not lead, and ends the candidacy, as Campaign would.
//
// Fails if a place at the head of the queue comes before the context.
func TestAwaitAfterTheEndOfItsContext(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	s.register(c)
	ctx, cancel := context.WithCancel(s.Ctx)
	cancel()
	require.ErrorIs(t, etcdtest.Err(c.Await(ctx)), context.Canceled)
	require.NoError(t, c.Close(s.Ctx))
	require.Empty(t, s.Queue())
}
