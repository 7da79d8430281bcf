package election_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

func TestRequeueWhileWaiting(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	j := &journal{}
	b, bs, waits := s.waitingFor("b", func(cfg *election.Config) {
		cfg.Hooks.Registered = func(e election.RegisteredEvent) { j.add("registered") }
		cfg.Hooks.Ended = func(e election.EndedEvent) {
			j.add("ended led %v stepped %v", e.Led, errors.Is(e.Cause, eldest.ErrRequeued))
		}
	})
	before := get(s, waits)
	require.NoError(t, b.Proclaim(s.Ctx, []byte("proclaimed")))
	c, cs, behind := s.waitingFor("c", func(cfg *election.Config) { cfg.KV = s.Admin }) // whose requests are not counted
	get(s, behind)

	s.Rec.Reset()
	place := s.requeue(b)
	require.Equal(t, 2, s.Rec.Count("Txn"), "two requests")
	require.Equal(t, []string{l.Key(), c.Key(), b.Key()}, s.Queue())
	require.Greater(t, place.Token, before.Token)
	require.Equal(t, c.Key(), place.Predecessor)
	require.Equal(t, int64(3), place.Queue)
	require.Equal(t, "proclaimed", s.value(b.Key()), "with the value that was proclaimed last")
	require.Equal(t, c.Key(), get(s, waits).Predecessor.Key)
	require.Equal(t, election.Status{Token: place.Token}, b.Status())

	require.NoError(t, l.Resign(s.Ctx))
	cw := electiontest.Wins(t, cs)
	require.Empty(t, bs, "the campaign goes on")
	require.NoError(t, cw.Resign(s.Ctx))
	bw := electiontest.Wins(t, bs)
	require.Equal(t, place.Token, bw.Token())
	require.ErrorIs(t, etcdtest.Err(b.Requeue(s.Ctx)), eldest.ErrLeading)
	require.NoError(t, bw.Err())
	require.NoError(t, b.Close(s.Ctx))
	require.Equal(t, []string{"registered", "ended led false stepped true", "registered", "ended led true stepped false"}, j.all())
}

func TestRequeueIsRefused(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	refused := func(reasons ...error) {
		t.Helper()
		_, err := c.Requeue(s.Ctx)
		for _, reason := range reasons {
			require.ErrorIs(t, err, reason)
		}
	}
	refused(eldest.ErrNotRegistered)
	l := s.lead(c)
	refused(eldest.ErrLeading)
	require.NoError(t, l.Resign(s.Ctx))
	refused(eldest.ErrNotRegistered, eldest.ErrResigned)
	require.NoError(t, c.Close(s.Ctx))
	refused(eldest.ErrClosed)
}

// Await is called during a Requeue whose caller no longer waits.
func TestAwaitDuringARequeue(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	c, g := s.gated("v")
	s.register(c)
	sending, release := g.stop()
	stepped := etcdtest.Go(func() error { return etcdtest.Err(c.Requeue(s.Ctx)) })
	get(s, sending)
	result := s.awaiting(c)
	close(release)
	require.NoError(t, get(s, stepped))
	require.NoError(t, l.Resign(s.Ctx))
	electiontest.Wins(t, result)
}

// The end of a campaign ends it during a requeue too, and leaves no key.
func TestEndDuringARequeue(t *testing.T) {
	why := errors.New("enough")
	type end = func(ctx context.Context, c *election.Candidate, cancel context.CancelCauseFunc) error
	for reason, end := range map[error]end{
		eldest.ErrWithdrawn: func(ctx context.Context, c *election.Candidate, _ context.CancelCauseFunc) error {
			return c.Withdraw(ctx)
		},
		eldest.ErrClosed: func(ctx context.Context, c *election.Candidate, _ context.CancelCauseFunc) error { return c.Close(ctx) },
		why: func(_ context.Context, _ *election.Candidate, cancel context.CancelCauseFunc) error {
			cancel(why)
			return nil
		},
	} {
		for _, at := range []string{"the removal", "the registration"} {
			t.Run(reason.Error()+" during "+at, func(t *testing.T) {
				s := newEnv(t)
				l := s.lead(s.candidate("leader"))
				waits := make(chan election.WaitingEvent, 100)
				c, g := s.gated("v", func(cfg *election.Config) {
					cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
				})
				ctx, cancel := context.WithCancelCause(s.Ctx)
				defer cancel(nil)
				waiting := s.campaigning(ctx, c)
				get(s, waits)
				ended := make(chan error, 1)
				told := make(chan struct{})
				stop := func(context.Context) error {
					go func() { ended <- end(s.Ctx, c, cancel) }()
					<-told
					return nil
				}
				if at == "the removal" {
					g.on(stop, nil)
				} else {
					g.on(nil, func(_ context.Context, err error) error { g.on(stop, nil); return err })
				}
				_, err := c.Requeue(s.Ctx)
				close(told)
				require.ErrorIs(t, err, reason)
				electiontest.Fails(t, waiting, reason)
				require.NoError(t, get(s, ended))
				s.Until("nothing is left", func() bool { return fmt.Sprint(s.Queue()) == fmt.Sprint([]string{l.Key()}) })
				require.NoError(t, c.Close(s.Ctx))
				require.NoError(t, l.Err())
			})
		}
	}
}

// G8: a lost reply to the removal or to the new registration leaves exactly one key.
func TestLostRepliesOfARequeue(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	c, host := s.behind("v")
	place := s.register(c)
	// A removal compares the key and deletes it. A registration compares it, writes it, has the
	// pointer name it, and reads it if it exists already.
	naming := func(times int) func(message []byte) bool {
		return func(message []byte) bool { return bytes.Count(message, []byte(c.Key())) == times }
	}
	for range 2 {
		removal, registration := host.SwallowNextReply(naming(2)), host.SwallowNextReply(naming(4))
		next := s.requeue(c)
		require.NoError(t, removal.Wait(s.Ctx))
		require.NoError(t, registration.Wait(s.Ctx))
		require.Greater(t, next.Token, place.Token)
		require.Equal(t, []string{l.Key(), c.Key()}, s.Queue())
		place = next
	}
	require.NoError(t, l.Resign(s.Ctx))
	won := s.await(c)
	require.Equal(t, place.Token, won.Token())
}

func TestTwoRequeuesAreOne(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("leader"))
	ended, change := ending()
	c, g := s.gated("v", change)
	s.register(c)
	sending, release := g.stop()
	step := func() election.Position { place, _ := c.Requeue(s.Ctx); return place }
	first := etcdtest.Go(step)
	get(s, sending)
	require.ErrorIs(t, etcdtest.Err(c.Requeue(etcdtest.ContextFor(t, 0))), context.DeadlineExceeded, "the other one's is waited for")
	second := etcdtest.Go(step)
	close(release)
	if get(s, first).Token == get(s, second).Token {
		require.NoError(t, c.Close(s.Ctx))
		require.Len(t, ended, 2, "one step, and the end")
	}
}

// The new registration is refused permanently: the campaign ends with that error, not queued.
func TestRequeueWhoseRegistrationIsRefused(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	var entered atomic.Int32
	c, waiting, waits := s.waitingFor("v", by(ordering{Ordering: txn.ByCreateRevision{}, enter: func() error {
		if entered.Add(1) > 1 {
			return fmt.Errorf("%w: not again", eldest.ErrInvalid)
		}
		return nil
	}}))
	get(s, waits)
	_, err := c.Requeue(s.Ctx)
	require.ErrorContains(t, err, "not again")
	require.ErrorContains(t, electiontest.Fails(t, waiting).Reason, "not again")
	require.Equal(t, []string{l.Key()}, s.Queue())
	require.Equal(t, election.Status{}, c.Status())
}

// Requeue is called when the proof of the win has arrived and the win is not decided yet: the
// candidate requeues, and does not lead with the token that it gave up.
func TestRequeueWhileTheProofIsOnItsWay(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	var c *election.Candidate
	var asked atomic.Bool
	places := make(chan election.Position, 1)
	ahead := func(ctx context.Context, _ int64, read reading) (txn.Position, error) {
		next, err := read()
		if err == nil && next.First() && asked.CompareAndSwap(false, true) {
			go func() {
				place, err := c.Requeue(s.Ctx)
				assert.NoError(t, err)
				places <- place
			}()
			<-ctx.Done() // it has been called
		}
		return next, err
	}
	c, waiting, waits := s.waitingFor("v", by(ordering{Ordering: txn.ByCreateRevision{}, ahead: ahead}))
	before := get(s, waits).Token
	require.NoError(t, l.Resign(s.Ctx))
	won := electiontest.Wins(t, waiting)
	require.Greater(t, won.Token(), before, "a win with the place that was given up")
	require.Equal(t, get(s, places).Token, won.Token())
}

// A candidate requeues before the reply to its proclaim: either the value was deleted with the old
// key, and Proclaim returns that, or the value is in the new key.
func TestRequeueDuringAProclaim(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("leader"))
	c, g := s.gated("before")
	s.register(c)
	g.on(nil, func(_ context.Context, err error) error {
		s.requeue(c)
		return err
	})
	s.is(c.Proclaim(s.Ctx, []byte("after")), eldest.ErrNotRegistered, eldest.ErrRequeued)
	require.Equal(t, "before", s.value(c.Key()))
	require.NoError(t, c.Proclaim(s.Ctx, []byte("after")))
	s.requeue(c)
	require.Equal(t, "after", s.value(c.Key()))
}

// A win and a requeue exclude each other, whichever is first.
func TestRequeueAtTheMomentOfTheWin(t *testing.T) {
	s := newEnv(t)
	leader := s.candidate("leader")
	waits := make(chan election.WaitingEvent, 1000)
	c := s.candidate("c", func(cfg *election.Config) { cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e } })
	both := map[bool]int{}
	for range 30 {
		l := s.lead(leader)
		waiting := s.campaigning(s.Ctx, c)
		for e := get(s, waits); e.Predecessor.Token != l.Token(); e = get(s, waits) {
		}
		var place election.Position
		var err error
		var racing sync.WaitGroup
		racing.Go(func() { _ = l.Resign(s.Ctx) })
		racing.Go(func() { place, err = c.Requeue(s.Ctx) })
		racing.Wait()
		won := electiontest.Wins(t, waiting)
		if err == nil {
			require.Equal(t, place.Token, won.Token(), "who has requeued wins from the new place only")
		} else {
			require.ErrorIs(t, err, eldest.ErrLeading)
		}
		both[err == nil]++
		require.NoError(t, won.Err())
		require.Equal(t, []string{c.Key()}, s.Queue())
		require.NoError(t, won.Resign(s.Ctx))
	}
	t.Logf("requeued: %d, won: %d", both[true], both[false])
}

// A requeue is asked for at the moment at which the campaign ends: it is taken or
// refused, and no call waits for one that no campaign takes.
func TestRequeueAtTheEndOfACampaign(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("leader"))
	c := s.candidate("v")
	for range 10 {
		ctx, cancel := context.WithCancel(s.Ctx)
		waiting := s.campaigning(ctx, c)
		s.Until("it waits", func() bool { return c.Status().Token > 0 })
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				<-ctx.Done()
				for s.Ctx.Err() == nil {
					if _, err := c.Requeue(s.Ctx); err != nil {
						return
					}
				}
			})
		}
		cancel()
		electiontest.Fails(t, waiting, context.Canceled)
		asking.Wait()
		require.NoError(t, s.Ctx.Err(), "somebody waited for a step that nobody takes")
	}
}

// The key is deleted by another client while the candidate is about to give it up: a candidate that
// was deposed is not in the queue any more.
func TestDeposedBeforeARequeue(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	c, waiting, waits := s.waitingFor("v")
	get(s, waits)
	s.Remove(c.Key())
	_, err := c.Requeue(s.Ctx)
	if err == nil { // the requeue was first: registered again
		require.Equal(t, []string{l.Key(), c.Key()}, s.Queue())
		require.NoError(t, c.Withdraw(s.Ctx))
		electiontest.Fails(t, waiting, eldest.ErrWithdrawn)
		return
	}
	require.ErrorIs(t, err, eldest.ErrDeposed)
	electiontest.Fails(t, waiting, eldest.ErrDeposed)
	require.Equal(t, []string{l.Key()}, s.Queue())
}

func TestRequeueWithoutAwait(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("leader"))
	b, c := s.candidate("b"), s.candidate("c")
	for _, x := range []*election.Candidate{b, c} {
		s.register(x)
	}
	place := s.requeue(b)
	require.Equal(t, []string{l.Key(), c.Key(), b.Key()}, s.Queue())
	require.ErrorIs(t, etcdtest.Err(b.Register(s.Ctx)), eldest.ErrCampaigning, "it stands")
	require.NoError(t, c.Withdraw(s.Ctx))
	require.NoError(t, l.Resign(s.Ctx))
	won := s.await(b)
	require.Equal(t, place.Token, won.Token())
}

// untilReady is a context that ends when ready is closed. Its end is waited for only after that.
type untilReady struct {
	context.Context
	ready chan struct{}
}

func (c untilReady) Done() <-chan struct{} { <-c.ready; return c.ready }
func (untilReady) Err() error              { return context.Canceled }

// The context ends when the requeue is completed. No campaign waits, so an error would say that the
// candidate has left the queue.
//
// Fails, in some rounds, if the end of the context comes first.
func TestContextEndsWithTheRequeue(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("elder"))
	c := s.candidate("v")
	for range 20 {
		before := s.register(c).Token
		ctx := untilReady{s.Ctx, make(chan struct{})}
		go func() {
			defer close(ctx.ready)
			s.Until("queued again", func() bool { return c.Status().Token > before })
		}()
		place, err := c.Requeue(ctx)
		require.NoError(t, err)
		require.Greater(t, place.Token, before)
		require.NoError(t, c.Withdraw(s.Ctx))
	}
}
