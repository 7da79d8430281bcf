package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// journal records what hooks are called with.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.lines...)
}

func (j *journal) hooks(cfg *election.Config) {
	cfg.Hooks = election.Hooks{
		Registered: func(e election.RegisteredEvent) {
			j.add("registered queue %d behind %q adopted %v", e.Queue, e.Predecessor, e.Adopted)
		},
		Waiting: func(e election.WaitingEvent) { j.add("waiting for %q", e.Predecessor.Key) },
		Won:     func(e election.WonEvent) { j.add("won %v", e.Revision >= int64(e.Token)) },
		Ended: func(e election.EndedEvent) {
			for _, cause := range []error{eldest.ErrResigned, eldest.ErrWithdrawn, eldest.ErrDeposed, context.Canceled, eldest.ErrClosed} {
				if errors.Is(e.Cause, cause) {
					j.add("ended led %v: %v", e.Led, cause)
				}
			}
		},
		Foreign: func(e election.ForeignEvent) { j.add("foreign %q", e.Key) },
	}
}

// A campaign whose client is partitioned from etcd, under a context without an end, reports each
// failed attempt: both for a candidate that registers and for one that waits.
func TestRegression60CampaignWithoutEtcdIsReported(t *testing.T) {
	s := newEnv(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	s.lead(s.candidate("leader"))
	failed := make(chan election.RetryingEvent, 1000)
	lossy := func(cfg *election.Config) {
		cfg.KV, cfg.Watcher, cfg.Timeout, cfg.WatchCheck = cli, cli, 200*time.Millisecond, 200*time.Millisecond
		cfg.Hooks.Retrying = func(e election.RetryingEvent) { failed <- e }
	}
	reported := func(op, key string) {
		t.Helper()
		for attempt := 0; attempt < 2; {
			e := get(s, failed)
			if e.Op == op && e.Key == key && e.Attempt > attempt {
				require.Equal(t, s.Election, e.Election)
				require.Error(t, e.Err)
				require.Positive(t, e.Pause)
				require.False(t, e.At.IsZero())
				attempt = e.Attempt
			}
		}
	}
	waiter, waiting, waits := s.waitingFor("waiter", lossy)
	late := s.candidate("late", lossy)
	get(s, waits) // so its registration was answered
	host.Cut()
	reported("watch", waiter.Key())
	entering := s.campaigning(context.Background(), late)
	reported("register", late.Key())
	_ = waiter.Withdraw(etcdtest.ContextFor(t, 0))
	electiontest.Fails(t, waiting, eldest.ErrWithdrawn)
	_ = late.Withdraw(etcdtest.ContextFor(t, 0))
	electiontest.Fails(t, entering, eldest.ErrWithdrawn)
	reported("remove key", waiter.Key())
	host.Mend()
}

// The hooks of three candidacies: one that is won and resigned, one that is withdrawn, one that is given up.
func TestHooksTellTheStoryInOrder(t *testing.T) {
	s := newEnv(t)
	a, b := s.candidate("a"), s.candidate("b")
	la := s.lead(a)
	s.register(b)
	foreign := keys.Prefix(s.Election) + "zzz"
	s.Put(foreign, "")
	t.Cleanup(func() { _, _ = s.Admin.Delete(context.Background(), foreign) })

	j := &journal{}
	c := s.candidate("c", j.hooks)
	told := func(n int) {
		t.Helper()
		s.Until("the hooks are told", func() bool { return len(j.all()) >= n })
	}
	waiting := s.campaigning(s.Ctx, c)
	told(3)
	require.NoError(t, b.Withdraw(s.Ctx))
	told(4)
	require.NoError(t, la.Resign(s.Ctx))
	require.NoError(t, electiontest.Wins(t, waiting).Resign(s.Ctx))

	d := s.candidate("d")
	s.lead(d)
	waiting = s.campaigning(s.Ctx, c)
	told(9)
	require.NoError(t, c.Withdraw(s.Ctx))
	electiontest.Fails(t, waiting)
	ctx, cancel := context.WithCancel(s.Ctx)
	waiting = s.campaigning(ctx, c)
	told(13)
	cancel()
	electiontest.Fails(t, waiting)
	require.NoError(t, c.Close(s.Ctx), "waits for the hooks")

	registered := func(queue int, behind *election.Candidate) string {
		return fmt.Sprintf("registered queue %d behind %q adopted false", queue, behind.Key())
	}
	waits := func(c *election.Candidate) string { return fmt.Sprintf("waiting for %q", c.Key()) }
	ignored := fmt.Sprintf("foreign %q", foreign)
	require.Equal(t, []string{
		registered(4, b), ignored, waits(b), waits(a), "won true", "ended led true: resigned",
		registered(3, d), ignored, waits(d), "ended led false: withdrawn",
		registered(3, d), ignored, waits(d), "ended led false: context canceled",
	}, j.all())
}

// However many rounds race with their ends, each Registered is followed by one Ended, and no hook
// is called for a round after that.
func TestHooksOrderUnderRaces(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client)
	raced := 0
	for round := range 40 {
		j := &journal{}
		c := s.candidate("v", on(session), j.hooks)
		waiting := s.campaigning(s.Ctx, c)
		if round%2 == 1 { // otherwise Close is nearly always first
			s.Until("it is in the queue", func() bool { return len(j.all()) > 0 })
		}
		require.NoError(t, c.Close(s.Ctx))
		get(s, waiting)
		lines := j.all()
		if len(lines) == 0 {
			continue // closed before it began
		}
		raced++
		require.Contains(t, lines[0], "registered")
		require.Contains(t, lines[len(lines)-1], "ended")
		registered, ended := 0, 0
		for _, line := range lines {
			switch word, _, _ := strings.Cut(line, " "); word {
			case "registered":
				registered++
			case "ended":
				ended++
			}
		}
		require.Equal(t, registered, ended, "%q", lines)
	}
	require.GreaterOrEqual(t, raced, 20, "INVALID: nothing was raced with")
}

// The status of a candidate in each phase, and the closing of Changed at each change.
func TestStatusOfACandidate(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("c")
	require.Zero(t, c.Status(), "before the first candidacy")
	step := func(f func(), want election.Status) {
		t.Helper()
		changed := c.Changed()
		f()
		get(s, changed)
		require.Equal(t, want, c.Status())
	}
	l := s.lead(s.candidate("elder"))
	registered := c.Changed()
	token := s.register(c).Token
	get(s, registered)
	require.Equal(t, election.Status{Token: token}, c.Status())
	leading := election.Status{Token: token, Leading: true}
	step(func() { require.NoError(t, l.Resign(s.Ctx)); l = s.await(c) }, leading)
	step(func() { l.Drain(nil) }, election.Status{Token: token, Draining: true})
	step(func() { s.Remove(c.Key()) }, election.Status{})
	require.False(t, c.Closed())
	step(func() { require.NoError(t, c.Close(s.Ctx)) }, election.Status{})
	require.True(t, c.Closed())
}

// The phases of a hand-over: a candidate without a predecessor reports no proof, and one with a predecessor has
// waited for at least as long as its proof took.
func TestWonTellsThePhasesOfTheHandOver(t *testing.T) {
	s := newEnv(t)
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
	lb := electiontest.Wins(t, second)
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

// A hook may call back into the library.
func TestHookCallsBack(t *testing.T) {
	s := newEnv(t)
	var c *election.Candidate
	var l *election.Leadership
	failures, made, led := make(chan error, 10), make(chan struct{}), make(chan struct{})
	c = s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Registered = func(election.RegisteredEvent) {
			<-made
			failures <- c.Proclaim(s.Ctx, []byte("from a hook"))
		}
		cfg.Hooks.Won = func(election.WonEvent) {
			<-led
			if _, err := c.Campaign(s.Ctx); !errors.Is(err, eldest.ErrLeading) {
				failures <- fmt.Errorf("campaign: %w", err)
			}
			failures <- l.Resign(s.Ctx)
		}
		cfg.Hooks.Ended = func(election.EndedEvent) {
			if err := c.Withdraw(s.Ctx); !errors.Is(err, eldest.ErrNotRegistered) {
				failures <- fmt.Errorf("withdraw: %w", err)
			}
			failures <- nil
		}
	})
	close(made)
	l = s.lead(c)
	close(led)
	for range 3 {
		require.NoError(t, get(s, failures))
	}
	require.NoError(t, c.Close(s.Ctx))
	require.Empty(t, s.Queue())
}

// Calls that are dropped behind a hook that blocks are counted.
func TestDroppedCallsOfACandidateAreCounted(t *testing.T) {
	s := newEnv(t)
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

// A registration may still arrive when the candidate is closed. The session continues to watch for it,
// and reports nothing: the program has closed what its hooks use.
//
// Fails if that watch calls hooks.
func TestNoHookAfterClose(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	g := newGate(cli)
	var closed atomic.Bool
	late := make(chan string, 1000)
	report := func(what string) {
		if closed.Load() {
			late <- what
		}
	}
	c := s.candidate("v", on(session), soon, func(cfg *election.Config) {
		cfg.KV, cfg.Watcher, cfg.Timeout = g, cli, 100*time.Millisecond
		cfg.WatchCheck = 100 * time.Millisecond
		cfg.Hooks.Interrupted = func(e election.InterruptedEvent) { report("interrupted: " + e.Reason.Error()) }
		cfg.Hooks.Retrying = func(e election.RetryingEvent) { report("retrying " + e.Op) }
	})
	s.lost(c, g)
	require.NoError(t, c.Close(s.Ctx))
	closed.Store(true)
	host.Cut()
	time.Sleep(time.Second)
	require.Empty(t, late)
	host.Mend()
	s.arrives(session)
	s.clean(session)
}
