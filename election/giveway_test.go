package election_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// byNumber reads a priority that is written in digits.
var byNumber = election.ByPriority(func(value []byte) int {
	n, _ := strconv.Atoi(string(value))
	return n
})

func TestByPriority(t *testing.T) {
	c := func(values ...string) (all []eldest.Candidate) {
		for _, v := range values {
			all = append(all, eldest.Candidate{Value: []byte(v)})
		}
		return all
	}
	own := c("3")[0]
	require.False(t, byNumber(own, nil))
	require.False(t, byNumber(own, c("1", "2", "3", "theirs")), "equal ones lead in their order")
	require.True(t, byNumber(own, c("1", "4")))
	require.True(t, byNumber(c("-1")[0], c("theirs")))
}

// Five of different priority lead in the order of those, best first, whatever the order
// in which they came; each gives way once for each better one that stands at most.
func TestTheBestOfFiveLeads(t *testing.T) {
	s := newStage(t)
	leader := s.lead(s.candidate("0"))
	values := []string{"2", "1", "4", "3", "5"}
	won := make(chan *election.Leadership, len(values))
	var steps atomic.Int32
	for i, value := range values {
		c := s.candidate(value, func(cfg *election.Config) {
			cfg.GiveWay = byNumber
			cfg.Hooks.Registered = func(election.RegisteredEvent) { steps.Add(1) }
		})
		go func() {
			if l, err := c.Campaign(s.Ctx); err == nil {
				won <- l
			}
		}()
		s.queued(i + 2)
	}
	require.NoError(t, leader.Resign(s.Ctx))
	var order []string
	var token eldest.Token
	for i := range values {
		l := get(s, won)
		// Those that gave way to it are on their way back. Who is late has no part in what
		// is decided next.
		s.queued(len(values) - i)
		order = append(order, s.value(l.Key()))
		require.Greater(t, l.Token(), token, "G2")
		token = l.Token()
		require.NoError(t, l.Resign(s.Ctx))
	}
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, order)
	require.LessOrEqual(t, steps.Load(), int32(5+4+3+2+1), "registrations: once each, and once for each better one")
}

// Who stands alone leads without being asked, and no question is asked of etcd where
// there is nothing to give way with.
func TestNobodyToGiveWayTo(t *testing.T) {
	s := newStage(t)
	always := func(eldest.Candidate, []eldest.Candidate) bool { return true }
	c := s.candidate("v", func(cfg *election.Config) { cfg.GiveWay = always })
	l := s.lead(c)
	require.Equal(t, 1, s.Rec.Count("Range"), "the queue, with values")
	require.NoError(t, l.Resign(s.Ctx))

	plain := s.candidate("plain")
	s.Rec.Reset()
	l = s.lead(plain)
	require.Zero(t, s.Rec.Count("Range"))
	require.NoError(t, l.Resign(s.Ctx))

	require.NoError(t, etcdtest.Err(plain.Register(s.Ctx)))
	require.ErrorIs(t, etcdtest.Err(c.Try(s.Ctx)), eldest.ErrNotElected)
	require.NoError(t, plain.Withdraw(s.Ctx))
	l, err := c.Try(s.Ctx)
	require.NoError(t, err, "Try does not ask")
	require.NoError(t, l.Resign(s.Ctx))
}

// What GiveWay is given: the own candidate and the others, oldest first, with values.
func TestWhatGiveWayIsGiven(t *testing.T) {
	s := newStage(t)
	leader := s.lead(s.candidate("leader"))
	type question struct {
		own    eldest.Candidate
		others []eldest.Candidate
	}
	asked := make(chan question, 10)
	c, waiting, waits := s.waitingFor("c", func(cfg *election.Config) {
		cfg.GiveWay = func(own eldest.Candidate, others []eldest.Candidate) bool {
			asked <- question{own, slices.Clone(others)}
			return false
		}
	})
	get(s, waits)
	a, b := s.candidate("a"), s.candidate("b")
	for _, x := range []*election.Candidate{a, b} {
		require.NoError(t, etcdtest.Err(x.Register(s.Ctx)))
	}
	_, err := s.Admin.Put(s.Ctx, s.Election+"/no candidate", "")
	require.NoError(t, err)
	require.NoError(t, leader.Resign(s.Ctx))
	q := get(s, asked)
	require.NoError(t, get(s, waiting).err)
	require.Equal(t, c.Key(), q.own.Key)
	require.Equal(t, "c", string(q.own.Value))
	require.Len(t, q.others, 2)
	require.Equal(t, []string{a.Key(), b.Key()}, []string{q.others[0].Key, q.others[1].Key})
	require.Equal(t, []string{"a", "b"}, []string{string(q.others[0].Value), string(q.others[1].Value)})
	require.Empty(t, asked)
}

// The own key goes between the proof and the question: that is no win.
func TestDeposedWhileAskedToGiveWay(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.Watcher = etcdtest.Deaf(cfg.Watcher)
		cfg.Hooks.Registered = nil
		cfg.GiveWay = func(eldest.Candidate, []eldest.Candidate) bool { return true }
	})
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	s.Remove(c.Key())
	require.ErrorIs(t, etcdtest.Err(c.Await(s.Ctx)), eldest.ErrDeposed)
}

// Who gives way again and again does not do so as fast as it can: the pauses grow.
func TestGivingWayWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	var longest atomic.Int64
	waits := make(chan election.WaitingEvent, 1000)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.GiveWay = func(eldest.Candidate, []eldest.Candidate) bool { return true }
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
		cfg.Backoff = func(attempt int) time.Duration {
			longest.Store(max(longest.Load(), int64(attempt)))
			if attempt < 2 {
				return time.Millisecond
			}
			return 1100 * time.Millisecond // a long one does not make the next one short
		}
	})
	others := []string{s.Election + "/1", s.Election + "/2"}
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, others[0], "")))
	waiting := s.campaigning(ctx, c)
	for round := 0; longest.Load() <= 3; round++ {
		get(s, waits) // behind one of them: the other one comes, and that one goes
		require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, others[(round+1)%2], "")))
		s.Remove(others[round%2])
	}
	cancel()
	require.ErrorIs(t, get(s, waiting).err, context.Canceled)
}

// However often it gave way: with nobody left to give way to it leads, and at once.
func TestNobodyLeftToGiveWayTo(t *testing.T) {
	s := newStage(t)
	waits := make(chan election.WaitingEvent, 1000)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.GiveWay = func(eldest.Candidate, []eldest.Candidate) bool { return true }
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
		cfg.Backoff = func(int) time.Duration { return time.Hour }
	})
	others := []string{s.Election + "/1", s.Election + "/2"}
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, others[0], "")))
	waiting := s.campaigning(s.Ctx, c)
	for round := range 2 { // two steps are taken at once, and a third one would not be
		require.Equal(t, others[round%2], get(s, waits).Predecessor.Key)
		require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, others[(round+1)%2], "")))
		s.Remove(others[round%2])
	}
	require.Equal(t, others[0], get(s, waits).Predecessor.Key)
	s.Remove(others[0])
	require.NoError(t, get(s, waiting).err)
}

// A candidate that gives way can be asked to step back at the same moment; nothing of
// it returns before it leads.
func TestGiveWayAndStepBackTogether(t *testing.T) {
	s := newStage(t)
	better := s.candidate("9", func(cfg *election.Config) { cfg.GiveWay = byNumber })
	leader := s.lead(s.candidate("0"))
	c, waiting, waits := s.waitingFor("1", func(cfg *election.Config) { cfg.GiveWay = byNumber })
	get(s, waits)
	bs := s.campaigning(s.Ctx, better)
	s.queued(3)
	resigned := etcdtest.Go(func() error { return leader.Resign(s.Ctx) })
	_, err := c.StepBack(s.Ctx)
	require.NoError(t, err, "it cannot win while the better one stands")
	require.NoError(t, get(s, resigned))
	won := get(s, bs)
	require.NoError(t, won.err)
	require.Empty(t, waiting)
	require.NoError(t, won.l.Resign(s.Ctx))
	require.NoError(t, get(s, waiting).err)
}
