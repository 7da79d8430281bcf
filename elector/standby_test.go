package elector_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/observe"
)

// positions returns a standby function that sends each position to a channel until its context
// ends, and then the cause.
func positions() (standby func(*elector.Config), seen chan elector.Position, over chan error) {
	seen, over = make(chan elector.Position, 1024), make(chan error, 1024)
	return func(cfg *elector.Config) {
		cfg.Standby = func(ctx context.Context, p *elector.Positions) {
			for {
				position, err := p.Next(ctx)
				if err != nil {
					over <- context.Cause(ctx)
					return
				}
				seen <- position
			}
		}
	}, seen, over
}

// ahead waits for a position, of which the leader is the one with the id.
func ahead(t *testing.T, seen <-chan elector.Position, leader string, n int) {
	t.Helper()
	for {
		p := etcdtest.Take(t, seen, "the position")
		if l, ok := p.Status.Leader(); ok && l.NodeID == leader && p.Ahead == n {
			return
		}
	}
}

// A standby function is told the leader and the position, also when a candidate leaves that is not
// its predecessor; and that this node is next. Its context ends with the win.
func TestStandby(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := run(t, config(name, "a", cli))
	etcdtest.Take(t, a.won, "a's tenure")
	b := run(t, config(name, "b", cli))
	b.follows(t, "a")
	c := run(t, config(name, "c", cli))
	c.follows(t, "a")
	standby, seen, over := positions()
	d := run(t, config(name, "d", cli, standby))
	ahead(t, seen, "a", 3)
	require.ErrorIs(t, b.end(t), context.Canceled)
	ahead(t, seen, "a", 2)
	require.ErrorIs(t, a.end(t), context.Canceled)
	ahead(t, seen, "c", 1) // it is next
	require.Empty(t, over)
	require.ErrorIs(t, c.end(t), context.Canceled)
	require.ErrorIs(t, etcdtest.Take(t, over, "the end of the standby function"), eldest.ErrNoLeader)
	etcdtest.Take(t, d.won, "d's tenure")
	require.Empty(t, over, "it runs once in a round")
}

// Until the standby function has returned, the node holds the key, does not lead, and is Unknown.
// lead sees what the function has written, without a lock.
func TestLeadWaitsForStandby(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	ended, release, led := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	warm := 0
	n := &node{id: "n"}
	n.runWith(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Drain = etcdtest.Patience
		cfg.Standby = func(ctx context.Context, _ *elector.Positions) {
			<-ctx.Done()
			close(ended)
			<-release
			warm++
		}
	}), func(ctx context.Context, _ *elector.Leadership) error {
		led <- warm
		<-ctx.Done()
		return nil
	})
	etcdtest.Take(t, ended, "the end of the context: also a node that leads at once calls it")
	time.Sleep(50 * time.Millisecond) // in which a lead function that is not held back would begin
	require.Empty(t, led, "lead was called before the standby function has returned")
	s := n.becomes(t, elector.Unknown)
	require.ErrorIs(t, s.Reason(), eldest.ErrNoLeader)
	require.Len(t, queueOf(t, cli, name), 1)
	close(release)
	require.Equal(t, 1, etcdtest.Take(t, led, "the tenure"))
}

// A standby function that ignores its context: this node gives its key up, so that the next one
// leads, and is no candidate until the function has returned. Run returns without it, and the next
// Run waits for it.
func TestStandbyThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var running sync.Mutex
	began, release := make(chan struct{}, 1024), make(chan struct{})
	e, err := elector.New(config(name, "stuck", cli, func(cfg *elector.Config) {
		cfg.Drain = time.Millisecond
		cfg.Standby = func(context.Context, *elector.Positions) {
			if !running.TryLock() {
				t.Error("overlaps itself")
			}
			defer running.Unlock()
			began <- struct{}{}
			<-release
		}
	}))
	require.NoError(t, err)
	lead := func(ctx context.Context, _ *elector.Leadership) error {
		if !running.TryLock() {
			t.Error("overlaps the standby function")
		}
		defer running.Unlock()
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	first := etcdtest.Go(func() error { return e.Run(ctx, lead) })
	etcdtest.Take(t, began, "the standby function")
	other := run(t, config(name, "other", cli))
	etcdtest.Take(t, other.won, "the tenure of another node")
	require.Len(t, queueOf(t, cli, name), 1, "the stuck node is no candidate")
	cancel()
	require.ErrorIs(t, etcdtest.Take(t, first, "the end of Run"), eldest.ErrStuck)
	waitsForTheStuck(t, e, lead, began, func() { close(release) })
}

// The context ends with the cause of Withdraw and of Run's context; a lost session ends it, and the
// next round calls the function again.
func TestStandbyEndsWithTheRound(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := run(t, config(name, "a", cli))
	etcdtest.Take(t, a.won, "a's tenure")

	standby, seen, over := positions()
	b := run(t, config(name, "b", cli, standby))
	ahead(t, seen, "a", 1)
	require.NoError(t, b.Withdraw(etcdtest.Context(t), errEnough))
	require.ErrorIs(t, etcdtest.Take(t, over, "the end of the standby function"), errEnough)
	b.follows(t, "a")
	require.Empty(t, over)
	require.Empty(t, b.won)

	standby, seen, over = positions()
	c := run(t, config(name, "c", cli, standby))
	ahead(t, seen, "a", 1)
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), queueOf(t, cli, name)[1].Key)))
	require.ErrorIs(t, etcdtest.Take(t, over, "the end of the standby function"), eldest.ErrDeposed)
	ahead(t, seen, "a", 1) // in the next round
	require.ErrorIs(t, c.end(t), context.Canceled)
	require.ErrorIs(t, etcdtest.Take(t, over, "the end of the standby function"), context.Canceled)
	require.Empty(t, c.won)
}

// The tenure is lost while the standby function, whose context has ended, has not returned: lead is
// not called in it. Once the function has returned, the next round calls both.
func TestTenureLostDuringStandby(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(ctx context.Context, cli *clientv3.Client, own observe.Entry) error{
		"key": func(ctx context.Context, cli *clientv3.Client, own observe.Entry) error {
			return etcdtest.Err(cli.Delete(ctx, own.Key))
		},
		"lease": func(ctx context.Context, cli *clientv3.Client, own observe.Entry) error {
			return etcdtest.Err(cli.Revoke(ctx, clientv3.LeaseID(own.Lease)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
			ended, lost, release := make(chan struct{}, 9), make(chan error, 9), make(chan struct{})
			n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
				cfg.Drain = etcdtest.Patience
				cfg.Candidate.Hooks.Ended = func(e election.EndedEvent) { lost <- e.Cause }
				cfg.Standby = func(ctx context.Context, _ *elector.Positions) {
					<-ctx.Done()
					ended <- struct{}{}
					<-release
				}
			}))
			etcdtest.Take(t, ended, "the end of the context")
			own := queueOf(t, cli, name)[0]
			other := run(t, config(name, "other", cli))
			require.NoError(t, lose(etcdtest.Context(t), cli, own))
			require.Error(t, etcdtest.Take(t, lost, "the loss"))
			etcdtest.Take(t, other.won, "the tenure of the next node")
			require.NotEqual(t, elector.Leading, n.Status().Role())
			close(release)
			n.follows(t, "other")
			require.Empty(t, n.won, "lead was called in the tenure that was lost")
			require.ErrorIs(t, other.end(t), context.Canceled)
			etcdtest.Take(t, n.won, "the tenure in the next round")
			require.Len(t, ended, 1)
		})
	}
}

// G7 over many hand-overs: the standby and the lead function of a node share a variable without a
// lock, and the race detector finds a call that begins before the other has returned. A lead
// function always follows the standby function of its own round.
//
// The test fails if lead is called before the standby function has returned.
func TestStandbyNeverOverlapsLead(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var tenures atomic.Int64
	for _, id := range []string{"a", "b", "c"} {
		var running sync.Mutex
		calls, led := 0, 0
		n := &node{id: id}
		n.runWith(t, config(name, id, cli, func(cfg *elector.Config) {
			cfg.Backoff = func(int) time.Duration { return time.Millisecond }
			cfg.Standby = func(ctx context.Context, _ *elector.Positions) {
				if !running.TryLock() {
					t.Error("overlaps lead")
				}
				<-ctx.Done()
				time.Sleep(time.Millisecond) // in which a lead function that does not wait begins
				calls++
				running.Unlock()
			}
		}), func(context.Context, *elector.Leadership) error {
			if !running.TryLock() {
				t.Error("lead overlaps the standby function")
				return nil
			}
			defer running.Unlock()
			if calls <= led {
				t.Error("lead was called before the standby function of its round has returned")
			}
			led = calls
			tenures.Add(1)
			return nil // gives leadership up
		})
	}
	require.Eventually(t, func() bool { return tenures.Load() >= 60 }, etcdtest.Patience, time.Millisecond)
}

// A standby function may return early: the node stays in the queue. Positions that are read later
// end with the cause.
func TestStandbyThatReturns(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := run(t, config(name, "a", cli))
	etcdtest.Take(t, a.won, "a's tenure")
	kept := make(chan *elector.Positions, 1)
	b := run(t, config(name, "b", cli, func(cfg *elector.Config) {
		cfg.Standby = func(_ context.Context, p *elector.Positions) { kept <- p }
	}))
	p := etcdtest.Take(t, kept, "the standby function")
	b.follows(t, "a")
	_, err := p.Next(nil) //nolint:staticcheck // bad input
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorIs(t, a.end(t), context.Canceled)
	etcdtest.Take(t, b.won, "b's tenure")
	for err = nil; err == nil; {
		_, err = p.Next(etcdtest.Context(t))
	}
	require.ErrorIs(t, err, eldest.ErrNoLeader)
}

// A position whose session is over by the clock is unknown, before any timer has fired.
func TestPositionAfterTheDeadline(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		a := run(t, config("e", "a", cli, virtual))
		etcdtest.Take(t, a.won, "a's tenure")
		clock := etcdtest.NewClock()
		standby, seen, _ := positions()
		run(t, config("e", "b", cli, standby, func(cfg *elector.Config) { cfg.Session.Clock = clock }))
		ahead(t, seen, "a", 1)
		clock.Jump(time.Hour)
		require.NoError(t, a.SetAddress(etcdtest.Context(t), "a:2"))
		p := etcdtest.Take(t, seen, "the position")
		require.ErrorIs(t, p.Status.Reason(), eldest.ErrSessionLost)
		require.Equal(t, -1, p.Ahead)
	})
}
