package election_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// waitingFor makes a candidate that campaigns and is told of each predecessor.
func (s *stage) waitingFor(value string, change ...func(*election.Config)) (*election.Candidate, <-chan outcome, <-chan election.WaitingEvent) {
	s.T.Helper()
	waits := make(chan election.WaitingEvent, 100)
	change = append(change, func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
	})
	c := s.candidate(value, change...)
	return c, s.campaigning(s.Ctx, c), waits
}

func TestStepBackWhileWaiting(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	j := &journal{}
	b, bs, waits := s.waitingFor("b", func(cfg *election.Config) {
		cfg.Hooks.Registered = func(e election.RegisteredEvent) { j.add("registered") }
		cfg.Hooks.Ended = func(e election.EndedEvent) {
			j.add("ended led %v stepped %v", e.Led, errors.Is(e.Cause, eldest.ErrSteppedBack))
		}
	})
	before := get(s, waits)
	require.NoError(t, b.Proclaim(s.Ctx, []byte("proclaimed")))
	c, cs, behind := s.waitingFor("c", func(cfg *election.Config) { cfg.KV = s.Admin }) // whose requests do not count
	get(s, behind)

	s.Rec.Reset()
	place, err := b.StepBack(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, 2, s.Rec.Count("Txn"), "two requests")
	require.Equal(t, []string{l.Key(), c.Key(), b.Key()}, s.Queue())
	require.Greater(t, place.Token, before.Token)
	require.Equal(t, c.Key(), place.Predecessor)
	require.Equal(t, int64(3), place.Queue)
	require.Equal(t, "proclaimed", s.value(b.Key()), "with the value that was proclaimed last")
	require.Equal(t, c.Key(), get(s, waits).Predecessor.Key)
	require.Equal(t, election.Status{Token: place.Token}, b.Status())

	require.NoError(t, l.Resign(s.Ctx))
	cw := get(s, cs)
	require.NoError(t, cw.err)
	require.Empty(t, bs, "the campaign goes on")
	require.NoError(t, cw.l.Resign(s.Ctx))
	bw := get(s, bs)
	require.NoError(t, bw.err)
	require.Equal(t, place.Token, bw.l.Token())
	require.ErrorIs(t, etcdtest.Err(b.StepBack(s.Ctx)), eldest.ErrLeading)
	require.NoError(t, bw.l.Err())
	require.NoError(t, b.Close(s.Ctx))
	require.Equal(t, []string{"registered", "ended led false stepped true", "registered", "ended led true stepped false"}, j.all())
}

func TestStepBackWithoutAwait(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	b, c := s.candidate("b"), s.candidate("c")
	for _, x := range []*election.Candidate{b, c} {
		require.NoError(t, etcdtest.Err(x.Register(s.Ctx)))
	}
	place, err := b.StepBack(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, []string{l.Key(), c.Key(), b.Key()}, s.Queue())
	require.ErrorIs(t, etcdtest.Err(b.Register(s.Ctx)), eldest.ErrCampaigning, "it stands")
	require.NoError(t, c.Withdraw(s.Ctx))
	require.NoError(t, l.Resign(s.Ctx))
	won, err := b.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, place.Token, won.Token())
}

func TestStepBackIsRefused(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	require.ErrorIs(t, etcdtest.Err(c.StepBack(s.Ctx)), eldest.ErrNotRegistered)
	require.ErrorIs(t, etcdtest.Err(c.StepBack(nil)), eldest.ErrInvalid) //nolint:staticcheck // that is the point
	l := s.lead(c)
	require.ErrorIs(t, etcdtest.Err(c.StepBack(s.Ctx)), eldest.ErrLeading)
	require.NoError(t, l.Resign(s.Ctx))
	_, err := c.StepBack(s.Ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrResigned)
	require.NoError(t, c.Close(s.Ctx))
	require.ErrorIs(t, etcdtest.Err(c.StepBack(s.Ctx)), eldest.ErrClosed)
}

// Await comes while a StepBack that nobody waited for is between the two places.
func TestAwaitDuringAStepBack(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	c, g := s.gated("v")
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	sending, release := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return nil }, nil)
	stepped := make(chan error, 1)
	go func() { _, err := c.StepBack(s.Ctx); stepped <- err }()
	get(s, sending)
	result := make(chan outcome, 1)
	go func() { l, err := c.Await(s.Ctx); result <- outcome{l, err} }()
	close(release)
	require.NoError(t, get(s, stepped))
	require.NoError(t, l.Resign(s.Ctx))
	require.NoError(t, get(s, result).err)
}

// What ends a campaign ends it in the middle of a step back, too, and leaves nothing.
func TestEndDuringAStepBack(t *testing.T) {
	why := errors.New("enough")
	for name, tc := range map[string]struct {
		end  func(s *stage, c *election.Candidate, cancel context.CancelCauseFunc) error
		want error
	}{
		"withdraw": {func(s *stage, c *election.Candidate, _ context.CancelCauseFunc) error { return c.Withdraw(s.Ctx) }, eldest.ErrWithdrawn},
		"close":    {func(s *stage, c *election.Candidate, _ context.CancelCauseFunc) error { return c.Close(s.Ctx) }, eldest.ErrClosed},
		"context":  {func(_ *stage, _ *election.Candidate, cancel context.CancelCauseFunc) error { cancel(why); return nil }, why},
	} {
		for _, at := range []string{"the removal", "the registration"} {
			t.Run(name+" during "+at, func(t *testing.T) {
				s := newStage(t)
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
					go func() { ended <- tc.end(s, c, cancel) }()
					<-told
					return nil
				}
				if at == "the removal" {
					g.on(stop, nil)
				} else {
					g.on(nil, func(_ context.Context, err error) error { g.on(stop, nil); return err })
				}
				_, err := c.StepBack(s.Ctx)
				close(told)
				require.ErrorIs(t, err, tc.want)
				require.ErrorIs(t, get(s, waiting).err, tc.want)
				require.NoError(t, get(s, ended))
				s.Until("nothing is left", func() bool { return fmt.Sprint(s.Queue()) == fmt.Sprint([]string{l.Key()}) })
				require.NoError(t, c.Close(s.Ctx))
				require.NoError(t, l.Err())
			})
		}
	}
}

// G8: neither a lost reply to the removal nor one to the new registration leaves two
// keys, or none.
func TestLostRepliesOfAStepBack(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	c, host := s.behind("v")
	place, err := c.Register(s.Ctx)
	require.NoError(t, err)
	// A removal compares the key and deletes it; a registration compares it, writes it, has the
	// pointer name it, and reads it where it is there already.
	naming := func(times int) func(message []byte) bool {
		return func(message []byte) bool { return bytes.Count(message, []byte(c.Key())) == times }
	}
	for range 2 {
		removal, registration := host.SwallowNextReply(naming(2)), host.SwallowNextReply(naming(4))
		next, err := c.StepBack(s.Ctx)
		require.NoError(t, err)
		require.NoError(t, removal.Wait(s.Ctx))
		require.NoError(t, registration.Wait(s.Ctx))
		require.Greater(t, next.Token, place.Token)
		require.Equal(t, []string{l.Key(), c.Key()}, s.Queue())
		place = next
	}
	require.NoError(t, l.Resign(s.Ctx))
	won, err := c.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, place.Token, won.Token())
}

// A win and a step back exclude each other, whichever is first.
func TestStepBackAtTheMomentOfTheWin(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	leader := s.candidate("leader")
	waits := make(chan election.WaitingEvent, 1000)
	c := s.candidate("c", func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
	})
	both := map[bool]int{}
	for range 60 {
		l := s.lead(leader)
		waiting := s.campaigning(s.Ctx, c)
		for e := get(s, waits); e.Predecessor.Token != l.Token(); e = get(s, waits) {
		}
		var place election.Place
		var err error
		var racing sync.WaitGroup
		racing.Go(func() { _ = l.Resign(s.Ctx) })
		racing.Go(func() { place, err = c.StepBack(s.Ctx) })
		racing.Wait()
		won := get(s, waiting)
		require.NoError(t, won.err)
		if err == nil {
			require.Equal(t, place.Token, won.l.Token(), "who has stepped back wins from the new place only")
		} else {
			require.ErrorIs(t, err, eldest.ErrLeading)
		}
		both[err == nil]++
		require.NoError(t, won.l.Err())
		require.Equal(t, []string{c.Key()}, s.Queue())
		require.NoError(t, won.l.Resign(s.Ctx))
	}
	t.Logf("stepped back: %d, won: %d", both[true], both[false])
}

func TestTwoStepBacksAreOne(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("leader"))
	var ended atomic.Int32
	c, g := s.gated("v", func(cfg *election.Config) {
		cfg.Hooks.Ended = func(election.EndedEvent) { ended.Add(1) }
	})
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	sending, release := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return nil }, nil)
	places := make(chan election.Place, 2)
	step := func() {
		place, err := c.StepBack(s.Ctx)
		if err == nil {
			places <- place
		}
	}
	go step()
	get(s, sending)
	early, cancel := context.WithCancel(s.Ctx)
	cancel()
	require.ErrorIs(t, etcdtest.Err(c.StepBack(early)), context.Canceled, "the other one's is waited for")
	go step()
	close(release)
	first, second := get(s, places), get(s, places)
	if first.Token == second.Token {
		require.NoError(t, c.Close(s.Ctx))
		require.Equal(t, int32(2), ended.Load(), "one step, and the end")
	}
}

// The key is deleted from outside while it is about to be given up: whoever was told
// that it is deposed is not in the queue any more.
func TestDeposedBeforeAStepBack(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	c, waiting, waits := s.waitingFor("v")
	get(s, waits)
	s.Remove(c.Key())
	_, err := c.StepBack(s.Ctx)
	if err == nil { // it was first, and entered anew
		require.Equal(t, []string{l.Key(), c.Key()}, s.Queue())
		require.NoError(t, c.Withdraw(s.Ctx))
		require.ErrorIs(t, get(s, waiting).err, eldest.ErrWithdrawn)
		return
	}
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.ErrorIs(t, get(s, waiting).err, eldest.ErrDeposed)
	require.Equal(t, []string{l.Key()}, s.Queue())
}

// once lets a candidate enter one time.
type once struct {
	txn.ByCreateRevision
	entered atomic.Int32
}

func (q *once) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error) {
	if q.entered.Add(1) > 1 {
		return txn.Place{}, fmt.Errorf("%w: not again", eldest.ErrInvalid)
	}
	return q.ByCreateRevision.Enter(ctx, kv, e)
}

// The new registration is refused for good: the campaign ends with that, outside.
func TestStepBackWhoseRegistrationIsRefused(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	c, waiting, waits := s.waitingFor("v", func(cfg *election.Config) { cfg.Queue = &once{} })
	get(s, waits)
	_, err := c.StepBack(s.Ctx)
	require.ErrorContains(t, err, "not again")
	require.ErrorContains(t, get(s, waiting).err, "not again")
	require.Equal(t, []string{l.Key()}, s.Queue())
	require.Equal(t, election.Status{}, c.Status())
}

func TestChangedTellsOfEachTurn(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	step := func(what string, f func()) election.Status {
		changed := c.Changed()
		f()
		get(s, changed)
		return c.Status()
	}
	var l *election.Leadership
	got := step("a win", func() { l = s.lead(c) })
	require.Equal(t, election.Status{Token: l.Token(), Leading: true}, got)
	require.Equal(t, election.Status{Token: l.Token(), Retired: true}, step("a retirement", func() { l.Retire(nil) }))
	require.Equal(t, election.Status{}, step("an end", func() { _ = l.Resign(s.Ctx) }))
	require.False(t, c.Closed())
	step("a close", func() { _ = c.Close(s.Ctx) })
	require.True(t, c.Closed())
}

// proving is a queue that is told when the proof of a win has come, and before it is used.
type proving struct {
	txn.ByCreateRevision
	came atomic.Pointer[func(ctx context.Context)]
}

func (q *proving) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Place, at int64) (txn.Place, error) {
	next, err := q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
	if err == nil && next.First() {
		if came := q.came.Swap(nil); came != nil {
			(*came)(ctx)
		}
	}
	return next, err
}

// The step back is asked for when the proof of the win is there and the win is not
// decided: the candidate steps back, and does not lead with the token it gave up.
func TestStepBackWhileTheProofIsOnItsWay(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("leader"))
	q := &proving{}
	c, waiting, waits := s.waitingFor("v", func(cfg *election.Config) { cfg.Queue = q })
	before := get(s, waits).Token
	places := make(chan election.Place, 1)
	failed := make(chan error, 1)
	came := func(ctx context.Context) {
		go func() {
			place, err := c.StepBack(s.Ctx)
			failed <- err
			places <- place
		}()
		<-ctx.Done() // it has been asked
	}
	q.came.Store(&came)
	require.NoError(t, l.Resign(s.Ctx))
	won := get(s, waiting)
	require.NoError(t, won.err)
	require.Greater(t, won.l.Token(), before, "a win with the place that was given up")
	require.NoError(t, get(s, failed))
	require.Equal(t, get(s, places).Token, won.l.Token())
}
