package election_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// What a candidate says of itself at each step, and when its session has ended although
// nobody has told it yet.
func TestStatusOfACandidate(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")
	require.Zero(t, a.Status(), "it has not been anywhere")
	la := s.lead(a)
	require.Equal(t, election.Status{Token: la.Token(), Leading: true}, a.Status())
	place, err := b.Register(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, election.Status{Token: place.Token}, b.Status())

	require.NoError(t, la.Resign(s.Ctx))
	require.Zero(t, a.Status())
	lb, err := b.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, election.Status{Token: place.Token, Leading: true}, b.Status())

	s.Remove(b.Key())
	require.ErrorIs(t, s.over(lb), eldest.ErrDeposed)
	require.Zero(t, b.Status())
}

// The status of a candidate whose session has just passed its deadline needs no timer:
// the session's clock is read.
func TestStatusReadsTheSessionsEnd(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Client)
	a := s.candidate("a", on(session))
	s.lead(a)
	session.Abandon()
	require.Zero(t, a.Status())
}

// The phases of a hand-over: who waited for nobody has none to prove anything after, and
// who waited has waited at least as long as it knew that the wait was over.
func TestWonTellsThePhasesOfTheHandOver(t *testing.T) {
	s := newStage(t)
	var mu sync.Mutex
	won := make(map[eldest.Token]election.WonEvent)
	registered := make(map[eldest.Token]election.RegisteredEvent)
	told := func(cfg *election.Config) {
		cfg.Hooks.Won = func(e election.WonEvent) { mu.Lock(); defer mu.Unlock(); won[e.Token] = e }
		cfg.Hooks.Registered = func(e election.RegisteredEvent) { mu.Lock(); defer mu.Unlock(); registered[e.Token] = e }
	}
	a, b := s.candidate("a", told), s.candidate("b", told)
	la := s.lead(a)
	second := s.campaigning(s.Ctx, b)
	s.queued(2)
	resigning := time.Now()
	require.NoError(t, la.Resign(s.Ctx))
	lb := get(s, second).l
	require.NotNil(t, lb)
	s.Until("both wins were told", func() bool { mu.Lock(); defer mu.Unlock(); return len(won) == 2 })

	first, next := won[la.Token()], won[lb.Token()]
	require.Zero(t, first.Proof, "there was nobody to wait for")
	require.GreaterOrEqual(t, first.Waited, time.Duration(0))
	require.Positive(t, next.Proof)
	require.Greater(t, next.Waited, next.Proof)
	require.LessOrEqual(t, next.Proof, next.At.Sub(resigning), "the news came after the resignation began")
	require.Same(t, b, registered[lb.Token()].Candidate)
	require.Equal(t, next.Waited, next.At.Sub(registered[lb.Token()].At))
}

// A watch that breaks is told of, with the key that it was for: here the own one, that of
// a leader who waits for nobody.
func TestInterruptedWatchIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	told := make(chan election.InterruptedEvent, 100)
	a, host := s.behind("a", func(cfg *election.Config) {
		cfg.Recheck = 100 * time.Millisecond
		cfg.Timeout = 200 * time.Millisecond
		cfg.Hooks.Interrupted = func(e election.InterruptedEvent) {
			select {
			case told <- e:
			default:
			}
		}
	})
	l := s.lead(a)
	host.Cut()
	e := get(s, told)
	host.Mend()
	require.Equal(t, a.Key(), e.Key)
	require.Equal(t, a.Election(), e.Election)
	require.Error(t, e.Reason)
	require.False(t, e.At.IsZero())
	require.NoError(t, l.Err(), "the tenure does not hang on the watch")
}

// Calls that are dropped behind a hook that blocks are counted.
func TestDroppedCallsOfACandidateAreCounted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	release := make(chan struct{})
	a := s.candidate("a", func(cfg *election.Config) {
		cfg.Hooks.Registered = func(election.RegisteredEvent) { <-release }
		cfg.Hooks.Won = func(election.WonEvent) {}
		cfg.Hooks.Ended = func(election.EndedEvent) {}
	})
	defer close(release)
	require.Zero(t, a.Dropped())
	for a.Dropped() == 0 {
		require.NoError(t, s.lead(a).Resign(s.Ctx))
	}
}
