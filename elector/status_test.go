package elector_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// G3 for the status: past the deadline the first call returns Unknown, whether the node led or
// followed, before any timer has fired.
func TestStatusReadsTheClock(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	clock := etcdtest.NewClock()
	slept := func(cfg *elector.Config) {
		cfg.Session.Clock, cfg.Session.TTL = clock, time.Minute
		cfg.Backoff = func(int) time.Duration { return time.Hour } // no second round begins
	}
	leader := run(t, config(name, "leader", cli, slept))
	etcdtest.Take(t, leader.won, "the win")
	follower := run(t, config(name, "follower", cli, slept))
	follower.follows(t, "leader")
	fresh := leader.Watch()

	clock.Jump(time.Hour)
	for _, n := range []*node{leader, follower} {
		s := n.Status()
		require.Equal(t, elector.Unknown, s.Role(), "%s", n.id)
		require.ErrorIs(t, s.Reason(), eldest.ErrSessionLost)
	}
	s, err := fresh.Next(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, elector.Unknown, s.Role(), "a watch reads the clock as well")
}

// A status contains the time of its beginning, however late it is read: statuses of two nodes that
// were read late can still be put in order.
func TestStatusTellsSinceWhen(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	require.True(t, elector.Status{}.Since().IsZero())
	before := time.Now()
	n := run(t, config(name, "n", cli))
	etcdtest.Take(t, n.won, "the win")
	late := n.Watch()
	won := time.Now()
	time.Sleep(20 * time.Millisecond)
	s, err := late.NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)
	require.WithinRange(t, s.Since(), before, won)
	require.Equal(t, s.Since(), n.Status().Since(), "it is one status, whoever reads it")

	require.ErrorIs(t, n.end(t), context.Canceled)
	s = n.Status()
	require.Equal(t, elector.Unknown, s.Role())
	require.True(t, s.Since().After(won) && !s.Since().After(time.Now()), "%s", s.Since())
}

// Requirement 35: the first read of a watch returns the present status; later reads block for a
// newer one; of several new statuses the newest is returned; a filter skips statuses; and a read
// whose context has ended loses nothing.
func TestRequirement35Watch(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	n := run(t, config(name, "n", cli))
	etcdtest.Take(t, n.won, "the win")
	w, slow := n.Watch(), n.Watch()
	for _, of := range []*elector.Watch{w, slow} {
		s, err := of.Next(etcdtest.Context(t))
		require.NoError(t, err)
		require.Equal(t, elector.Leading, s.Role(), "the present status, whatever was before")
	}
	short, cancel := context.WithTimeout(etcdtest.Context(t), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, etcdtest.Err(w.Next(short)), context.DeadlineExceeded, "no status is read twice")

	key, first, _ := n.Status().Own()
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), key)))
	s, err := w.NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)
	etcdtest.Take(t, n.won, "the second win")
	_, second, _ := s.Own()
	require.Greater(t, second, first)
	s, err = slow.Next(etcdtest.Context(t))
	require.NoError(t, err)
	_, token, _ := s.Own()
	require.Equal(t, second, token, "the newest, and nothing in between")
}

// NextWhere checks the status as it is at this moment, not as it was published.
func TestNextWhereReadsTheClock(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	clock := etcdtest.NewClock()
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) { cfg.Session.Clock, cfg.Session.TTL = clock, time.Minute }))
	first := etcdtest.Take(t, n.won, "the win")
	clock.Jump(time.Hour)
	s, err := n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)
	_, token, ok := s.Own()
	require.True(t, ok)
	require.Greater(t, token, first.Token(), "that of the next tenure")
}

// A process that was stopped between the proof of its win and the call of its lead function does
// not call it: the tenure has been over for long.
func TestTenureThatIsOverIsNotLed(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	_, leader := orphan(t, cli, name, identity.Identity{NodeID: "other"})
	clock := etcdtest.NewClock()
	codec := &dreaming{asleep: make(chan struct{}), awake: make(chan struct{})}
	wins := make(chan eldest.Token, 16)
	var once sync.Once
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Session.Clock, cfg.Session.TTL, cfg.Codec = clock, time.Minute, codec
		cfg.Candidate.Hooks.Won = func(ev election.WonEvent) {
			once.Do(func() {
				clock.Jump(time.Hour)
				close(codec.awake)
			})
			wins <- ev.Token
		}
	}))
	n.follows(t, "other")
	codec.armed.Store(true)
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), leader, "another value", clientv3.WithIgnoreLease())))
	etcdtest.Take(t, codec.asleep, "the sleep")
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), leader)))
	over := etcdtest.Take(t, wins, "the win whose tenure is over")
	require.Greater(t, etcdtest.Take(t, n.won, "the call of the lead function").Token(), over)
}

// dreaming is a codec that blocks once after it is armed. It thereby blocks the observer, which
// must have ended before a lead function is called.
type dreaming struct {
	identity.Protobuf
	armed         atomic.Bool
	asleep, awake chan struct{}
}

func (c *dreaming) Decode(value []byte) (identity.Identity, error) {
	if c.armed.CompareAndSwap(true, false) {
		close(c.asleep)
		<-c.awake
	}
	return c.Protobuf.Decode(value)
}

// Requirement 52: each transition is logged as a structured line with role, key and token, and the
// lease with its granted TTL, which is not the TTL that was asked for.
//
// Fails if the line of a tenure lacks the lease or its TTL.
func TestRequirement52TransitionsAreLogged(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	var log etcdtest.Paper
	const granted = time.Minute
	asked := ttl(granted - 500*time.Millisecond)
	one := run(t, config(name, "one", cli, asked))
	l := etcdtest.Take(t, one.won, "the win")
	two := run(t, config(name, "two", cli, asked, func(cfg *elector.Config) { cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil)) }))
	two.follows(t, "one")
	_ = one.end(t)
	second := etcdtest.Take(t, two.won, "the second win")
	_ = two.end(t)
	// Wait for the last line: Run waits for the logger only for a short time.
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "Run is not running") }, etcdtest.Patience, time.Millisecond)

	type line struct {
		Msg, Election, Node, Instance string
		Status                        struct {
			Role, Node, Address, Key, Reason, Lease string
			Token                                   eldest.Token
			TTL                                     time.Duration
		}
	}
	var roles []string
	var last line
	for text := range strings.Lines(log.String()) {
		var got line
		require.NoError(t, json.Unmarshal([]byte(text), &got), "%s", text)
		if got.Msg != "election status" {
			continue
		}
		require.Equal(t, name, got.Election)
		require.Equal(t, "two", got.Node)
		require.Equal(t, two.Instance(), got.Instance)
		switch got.Status.Role {
		case "following":
			require.Equal(t, "one", got.Status.Node)
			require.Equal(t, "one:1", got.Status.Address)
			require.Equal(t, l.Key(), got.Status.Key)
			require.Equal(t, l.Token(), got.Status.Token)
			require.Equal(t, path.Base(l.Key()), got.Status.Lease)
			require.Equal(t, granted, got.Status.TTL)
		case "leading":
			require.Equal(t, second.Key(), got.Status.Key)
			require.Equal(t, second.Token(), got.Status.Token)
			require.Equal(t, path.Base(second.Key()), got.Status.Lease)
			require.Equal(t, granted, got.Status.TTL)
		case "unknown":
			require.NotEmpty(t, got.Status.Reason)
		}
		if got.Status.Role != last.Status.Role {
			roles = append(roles, got.Status.Role)
		}
		last = got
	}
	require.Subset(t, roles, []string{"following", "leading", "unknown"})
	require.Equal(t, "unknown", last.Status.Role)
}

// A logger that blocks delays nothing else, and Run ends without it.
func TestLoggerThatBlocks(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Logger = slog.New(slog.NewTextHandler(blocking(release), nil))
	}))
	etcdtest.Take(t, n.won, "the win")
	require.Error(t, n.end(t))
	require.Empty(t, queueOf(t, cli, name))
}

type blocking chan struct{}

func (b blocking) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}
