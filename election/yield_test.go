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
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// byNumber reads a priority in digits.
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

// Five candidates lead in the order of their priorities, best first, in whatever order they came;
// each yields at most once for each better one that is queued.
func TestTheBestOfFiveLeads(t *testing.T) {
	s := newEnv(t)
	leader := s.lead(s.candidate("0"))
	values := []string{"2", "1", "4", "3", "5"}
	won := make(chan *election.Leadership, len(values))
	var steps atomic.Int32
	for i, value := range values {
		c := s.candidate(value, func(cfg *election.Config) {
			cfg.ShouldYield = byNumber
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
		// Wait until those that yielded to it have registered again: a late one has no part in the
		// next decision.
		s.queued(len(values) - i)
		order = append(order, s.value(l.Key()))
		require.Greater(t, l.Token(), token, "G2")
		token = l.Token()
		require.NoError(t, l.Resign(s.Ctx))
	}
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, order)
	require.LessOrEqual(t, steps.Load(), int32(5+4+3+2+1), "registrations: once each, and once for each better one")
}

// A single candidate leads without a call of ShouldYield, and a candidate without ShouldYield sends
// no read for it.
func TestNobodyToYieldTo(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v", always)
	l := s.lead(c)
	require.Equal(t, 1, s.Rec.Count("Range"), "the queue, with values")
	require.NoError(t, l.Resign(s.Ctx))

	plain := s.candidate("plain")
	s.Rec.Reset()
	l = s.lead(plain)
	require.Zero(t, s.Rec.Count("Range"))
	require.NoError(t, l.Resign(s.Ctx))

	s.register(plain)
	require.ErrorIs(t, etcdtest.Err(c.Try(s.Ctx)), eldest.ErrNotElected)
	require.NoError(t, plain.Withdraw(s.Ctx))
	l, err := c.Try(s.Ctx)
	require.NoError(t, err, "Try does not ask")
	require.NoError(t, l.Resign(s.Ctx))
}

// The arguments of ShouldYield: the candidate itself and the others, oldest first, with values.
func TestWhatShouldYieldIsGiven(t *testing.T) {
	s := newEnv(t)
	leader := s.lead(s.candidate("leader"))
	type question struct {
		own    eldest.Candidate
		others []eldest.Candidate
	}
	asked := make(chan question, 10)
	c, waiting, waits := s.waitingFor("c", func(cfg *election.Config) {
		cfg.ShouldYield = func(own eldest.Candidate, others []eldest.Candidate) bool {
			asked <- question{own, slices.Clone(others)}
			return false
		}
	})
	get(s, waits)
	a, b := s.candidate("a"), s.candidate("b")
	s.register(a)
	s.register(b)
	s.Put(s.Election+"/no candidate", "")
	require.NoError(t, leader.Resign(s.Ctx))
	q := get(s, asked)
	electiontest.Wins(t, waiting)
	named := func(c eldest.Candidate) string { return c.Key + "=" + string(c.Value) }
	require.Equal(t, c.Key()+"=c", named(q.own))
	require.Len(t, q.others, 2)
	require.Equal(t, []string{a.Key() + "=a", b.Key() + "=b"}, []string{named(q.others[0]), named(q.others[1])})
	require.Empty(t, asked)
}

// The candidate's key is deleted between the proof and the call of ShouldYield: that is no win.
func TestDeposedWhileAskedToYield(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v", always, func(cfg *election.Config) { cfg.Watcher = etcdtest.Deaf(cfg.Watcher) })
	s.register(c)
	s.Remove(c.Key())
	require.ErrorIs(t, etcdtest.Err(c.Await(s.Ctx)), eldest.ErrDeposed)
}

// always has a candidate yield to any other one.
func always(cfg *election.Config) {
	cfg.ShouldYield = func(eldest.Candidate, []eldest.Candidate) bool { return true }
}

// givesWay has a candidate yield repeatedly. waits returns the key behind which the candidate is
// queued, once it is; next calls waits, puts another key and removes that one.
func (s *env) givesWay(ctx context.Context, backoff func(int) time.Duration) (waiting <-chan electiontest.Outcome, waits func() string, next func()) {
	waitings := make(chan election.WaitingEvent, 1000)
	c := s.candidate("v", always, func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waitings <- e }
		cfg.Backoff = backoff
	})
	behind, other := s.Election+"/1", s.Election+"/2"
	s.Put(behind, "")
	waits = func() string {
		require.Equal(s.T, behind, get(s, waitings).Predecessor.Key)
		return behind
	}
	return s.campaigning(ctx, c), waits, func() {
		waits()
		s.Put(other, "")
		s.Remove(behind)
		behind, other = other, behind
	}
}

// A candidate that yields repeatedly does not do so as fast as it can: the pauses grow.
func TestYieldingWithoutEnd(t *testing.T) {
	s := newEnv(t)
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	var longest atomic.Int64
	waiting, _, next := s.givesWay(ctx, func(attempt int) time.Duration {
		longest.Store(max(longest.Load(), int64(attempt)))
		if attempt < 2 {
			return time.Millisecond
		}
		return 1100 * time.Millisecond // a long pause does not shorten the next one
	})
	for longest.Load() <= 3 {
		next()
	}
	cancel()
	electiontest.Fails(t, waiting, context.Canceled)
}

// However often it yielded: without another candidate it leads at once.
func TestNobodyLeftToYieldTo(t *testing.T) {
	s := newEnv(t)
	waiting, waits, next := s.givesWay(s.Ctx, func(int) time.Duration { return time.Hour })
	next() // two yields have no pause, a third one would
	next()
	s.Remove(waits())
	electiontest.Wins(t, waiting)
}

// A candidate that yields can be requeued at the same moment; its campaign does not return before
// it leads.
func TestYieldAndRequeueTogether(t *testing.T) {
	s := newEnv(t)
	better := s.candidate("9", func(cfg *election.Config) { cfg.ShouldYield = byNumber })
	leader := s.lead(s.candidate("0"))
	c, waiting, waits := s.waitingFor("1", func(cfg *election.Config) { cfg.ShouldYield = byNumber })
	get(s, waits)
	bs := s.campaigning(s.Ctx, better)
	s.queued(3)
	resigned := etcdtest.Go(func() error { return leader.Resign(s.Ctx) })
	s.requeue(c) // it cannot win while the better one is queued
	require.NoError(t, get(s, resigned))
	won := electiontest.Wins(t, bs)
	require.Empty(t, waiting)
	require.NoError(t, won.Resign(s.Ctx))
	electiontest.Wins(t, waiting)
}
