package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// journal writes down what hooks are told.
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

// A campaign under a context without an end whose client has lost etcd says so again and
// again, at each step: a candidate that is to enter the queue, and one that waits in it.
func TestRegression60CampaignWithoutEtcdIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	s.lead(s.candidate("leader"))
	failed := make(chan election.RetryingEvent, 1000)
	lossy := func(cfg *election.Config) {
		cfg.KV, cfg.Watcher, cfg.Timeout, cfg.Recheck = cli, cli, 200*time.Millisecond, 200*time.Millisecond
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waits := make(chan election.WaitingEvent, 100)
	waiter := s.candidate("waiter", lossy, func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
	})
	late := s.candidate("late", lossy)
	waiting := s.campaigning(ctx, waiter)
	get(s, waits) // so its registration was answered
	host.Cut()
	reported("watch", waiter.Key())
	entering := s.campaigning(ctx, late)
	reported("register", late.Key())
	cancel()
	require.ErrorIs(t, get(s, waiting).err, context.Canceled)
	require.ErrorIs(t, get(s, entering).err, context.Canceled)
	reported("remove key", waiter.Key())
	host.Mend()
}

// Row 31: what is told, in which order.
func TestHooksTellTheStoryInOrder(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")
	la := s.lead(a)
	require.NoError(t, etcdtest.Err(b.Register(s.Ctx)))
	foreign := keys.Prefix(s.Election) + "zzz"
	_, err := s.Admin.Put(s.Ctx, foreign, "")
	require.NoError(t, err)
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
	l := get(s, waiting).l
	require.NotNil(t, l)
	require.NoError(t, l.Resign(s.Ctx))

	// A second round: withdrawn.
	d := s.lead(s.candidate("d"))
	waiting = s.campaigning(s.Ctx, c)
	told(9)
	require.NoError(t, c.Withdraw(s.Ctx))
	require.Error(t, get(s, waiting).err)
	// A third: given up.
	ctx, cancel := context.WithCancel(s.Ctx)
	waiting = s.campaigning(ctx, c)
	told(13)
	cancel()
	require.Error(t, get(s, waiting).err)
	require.NoError(t, c.Close(s.Ctx), "waits for the hooks")

	require.Equal(t, []string{
		fmt.Sprintf("registered queue 4 behind %q adopted false", b.Key()),
		fmt.Sprintf("foreign %q", foreign),
		fmt.Sprintf("waiting for %q", b.Key()),
		fmt.Sprintf("waiting for %q", a.Key()),
		"won true",
		"ended led true: resigned",
		fmt.Sprintf("registered queue 3 behind %q adopted false", d.Key()),
		fmt.Sprintf("foreign %q", foreign),
		fmt.Sprintf("waiting for %q", d.Key()),
		"ended led false: withdrawn",
		fmt.Sprintf("registered queue 3 behind %q adopted false", d.Key()),
		fmt.Sprintf("foreign %q", foreign),
		fmt.Sprintf("waiting for %q", d.Key()),
		"ended led false: context canceled",
	}, j.all())
}

// A hook may call back into the library.
func TestHookCallsBack(t *testing.T) {
	s := newStage(t)
	var c *election.Candidate
	failures := make(chan error, 10)
	made := make(chan struct{})
	var l *election.Leadership
	led := make(chan struct{})
	c = s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Registered = func(election.RegisteredEvent) {
			<-made
			failures <- c.Proclaim(s.Ctx, []byte("from a hook"))
		}
		cfg.Hooks.Won = func(election.WonEvent) {
			<-led
			_, err := c.Campaign(s.Ctx)
			if !errors.Is(err, eldest.ErrLeading) {
				failures <- fmt.Errorf("campaign: %w", err)
			}
			failures <- l.Resign(s.Ctx)
		}
		cfg.Hooks.Ended = func(election.EndedEvent) {
			// Whatever it says, it must not block.
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

// However many rounds race with their ends, each Registered has one Ended after it,
// and nothing is told of a round after that.
func TestHooksOrderUnderRaces(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Client)
	raced := 0
	for round := range 40 {
		j := &journal{}
		c := s.candidate("v", on(session), j.hooks)
		closed := make(chan error, 1)
		waiting := s.campaigning(s.Ctx, c)
		if round%2 == 1 { // or Close comes first, nearly always
			s.Until("it stands", func() bool { return len(j.all()) > 0 })
		}
		go func() { closed <- c.Close(s.Ctx) }()
		get(s, waiting)
		require.NoError(t, get(s, closed))
		lines := j.all()
		if len(lines) == 0 {
			continue // closed before it began
		}
		raced++
		require.Contains(t, lines[0], "registered")
		require.Contains(t, lines[len(lines)-1], "ended")
		registered, ended := 0, 0
		for _, line := range lines {
			if strings.HasPrefix(line, "registered") {
				registered++
			}
			if strings.HasPrefix(line, "ended") {
				ended++
			}
		}
		require.Equal(t, registered, ended, "%q", lines)
	}
	require.GreaterOrEqual(t, raced, 20, "INVALID: nothing was raced with")
}
