package regressions

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// errNone is a source that has no clients yet.
var errNone = errors.New("no clients yet")

// Row 35, in the loop: a node that never led is stopped, in whatever it is doing. No lead
// function runs, Run returns soon, and neither key nor lease is left.
//
// Fails when Run calls the lead function after its context has ended, or when a round
// that fails before the win does not close its session.
func TestRegression35_ShutdownOfANodeThatNeverLed(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	leader := stand(t, c.Client(t), name, "leader", electiontest.UntilTheEnd, lasting(time.Minute))
	l := leader.Wins(t)
	unmistakable := 43 * time.Second // no other lease has this TTL
	type scene struct {
		change func(*elector.Config)
		// ready waits until the node is where it is to be stopped; undo lets what
		// was held go on after the end of Run.
		ready, undo func(n *electiontest.Node)
		lease       bool // whether one may be left, without a key, to expire
	}
	scenes := map[string]func(t *testing.T, host *etcdtest.Host) scene{
		"while it follows": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{ready: func(n *electiontest.Node) { n.Follows(t, leader.ID, l.Token()) }}
		},
		"while it waits for clients": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{
				change: func(cfg *elector.Config) {
					cfg.Source = func(ctx context.Context) (elector.Clients, error) {
						<-ctx.Done()
						return elector.Clients{}, errNone
					}
				},
				ready: func(n *electiontest.Node) {
					etcdtest.Eventually(t, func() bool { return n.Rounds.Load() == 1 }, "it asks")
				},
			}
		},
		"in the back-off": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{
				change: func(cfg *elector.Config) {
					cfg.Source = func(context.Context) (elector.Clients, error) { return elector.Clients{}, errNone }
					cfg.Backoff = func(int) time.Duration { return time.Hour }
				},
				ready: func(n *electiontest.Node) {
					n.Until(t, "refused", func(s elector.Status) bool { return errors.Is(s.Reason(), errNone) })
				},
			}
		},
		"while its lease is granted": func(t *testing.T, host *etcdtest.Host) scene {
			return scene{
				lease: true,
				ready: func(*electiontest.Node) {
					etcdtest.Eventually(t, func() bool { return host.Stats().Held.Inbound > 0 }, "the request is held")
				},
				undo: func(*electiontest.Node) { host.Mend() },
			}
		},
		"while it registers": func(t *testing.T, host *etcdtest.Host) scene {
			swallowed := host.SwallowNextReply(etcdtest.Containing(name + "/"))
			return scene{ready: func(*electiontest.Node) { require.NoError(t, swallowed.Wait(etcdtest.Context(t))) }}
		},
	}
	for what, set := range scenes {
		unmistakable += time.Second
		t.Run(what, func(t *testing.T) {
			host := c.Host(t)
			cli := host.Client(t)
			require.NoError(t, etcdtest.Err(cli.Get(etcdtest.Context(t), "connected")))
			s := set(t, host)
			if s.lease {
				host.Hold(etcdtest.Inbound)
			}
			n := stand(t, cli, name, "n", electiontest.UntilTheEnd, lasting(unmistakable), func(cfg *elector.Config) {
				if s.change != nil {
					s.change(cfg)
				}
			})
			s.ready(n)
			begin := time.Now()
			require.ErrorIs(t, n.End(t), context.Canceled)
			require.Less(t, time.Since(begin), atOnce)
			require.Zero(t, n.Calls.Load(), "leader code ran")
			require.Equal(t, elector.Neither, n.Status().Role())
			if s.undo != nil {
				s.undo(n)
				require.NoError(t, etcdtest.Err(cli.Get(etcdtest.Context(t), "what was held has arrived")))
			}
			require.Equal(t, []string{l.Key()}, queueOf(t, c, name), "a key is left")
			if !s.lease {
				require.Zero(t, electiontest.LeasesOf(t, reader(t, c), unmistakable), "a lease is left")
			}
		})
	}
	require.NoError(t, l.Err())
}

// errStuck is the refusal of a gate.
var errStuck = errors.New("the application is stuck")

// gated renews a lease only while the application says that it lives.
type gated struct {
	clientv3.Lease
	stuck *atomic.Bool
}

func (g gated) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if g.stuck.Load() {
		return nil, errStuck
	}
	return g.Lease.KeepAliveOnce(ctx, id)
}

// Row 36 without the loop: a session of one's own goes through the same door. The gate's
// refusal is what its hooks report, a deadline later the tenure is over, and nothing was
// asked of the application but to say whether it lives.
func TestRegression36_StuckSession(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	var stuck atomic.Bool
	var rec etcdtest.Recorder
	cli := c.Client(t, rec.Attach)
	jeopardy := make(chan lease.JeopardyEvent, 16)
	p := join(t, cli, name, func(l *lease.Config, _ *election.Config) {
		l.TTL, l.Renewal, l.Lease, l.Majority = 4*time.Second, eager, gated{cli, &stuck}, cli
		l.Hooks.Jeopardy = func(ev lease.JeopardyEvent) { jeopardy <- ev }
	})
	leader := p.Lead(t)
	next := join(t, c.Client(t), name).Queue(t)
	etcdtest.Eventually(t, func() bool { return rec.Count("LeaseKeepAlive") > 2 }, "renewals, while it lives")
	etcdtest.Eventually(t, func() bool { return p.Session.Status().State == lease.Alive }, "no renewal is overdue")
	require.NoError(t, leader.Err())

	stuck.Store(true)
	for !errors.Is(etcdtest.Take(t, jeopardy, "the gate's refusal").Err, errStuck) {
		continue // a renewal was late before
	}
	renewals := rec.Count("LeaseKeepAlive")
	etcdtest.Take(t, leader.Done(), "the end of the tenure")
	require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
	electiontest.Wins(t, next)
	require.Equal(t, renewals, rec.Count("LeaseKeepAlive"), "it was renewed past the gate")
}

// Row 36 (a 48-minute outage of PD), by the door that is made for it: the lead function
// beats where it makes progress, and then hangs. Elsewhere its lease is renewed for as
// long as the process runs, and nobody else may lead. Here leadership passes on within
// the pulse's patience, a renewal and a TTL; the node stands again, and when its
// application lives again it leads once more.
//
// Fails when a renewal is sent without asking the pulse.
func TestRegression36_StuckApplicationWithAPulse(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	const within, life = 2 * time.Second, 6 * time.Second
	pulse := lease.NewPulse(within)
	var stuck atomic.Bool
	n := stand(t, c.Client(t), name, "n", func(ctx context.Context, _ *elector.Leadership) error {
		for work := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
			if !stuck.Load() {
				pulse.Beat()
			}
			select {
			case <-work.C:
			case <-ctx.Done():
				work.Stop()
			}
		}
		return nil
	}, lasting(life), func(cfg *elector.Config) { cfg.Session.Pulse = pulse })
	l := n.Wins(t)
	next := stand(t, c.Client(t), name, "next", electiontest.UntilTheEnd)
	next.Follows(t, n.ID, l.Token())
	// It works for longer than a lease lives, and nothing happens to it.
	etcdtest.Never(t, func() bool { return l.Err() != nil }, within+life, "it was lost beside a function that makes progress")

	stuck.Store(true)
	second := next.Wins(t)
	require.ErrorIs(t, l.Err(), eldest.ErrUnresponsive)
	require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	stuck.Store(false)
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // while it follows it lives as well, or it would lose its place
		for work := time.NewTicker(20 * time.Millisecond); alive.Err() == nil; <-work.C {
			pulse.Beat()
		}
	}()
	n.Follows(t, next.ID, second.Token())
	_ = next.End(t)
	require.Greater(t, n.Wins(t).Token(), second.Token())
}
