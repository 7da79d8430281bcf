package regressions

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// errNone is the error of a source that has no clients yet.
var errNone = errors.New("no clients yet")

// Row 35, in the loop: a node that never led is stopped, in each of its states. No lead function
// runs, Run returns soon, and neither key nor lease is left.
//
// Fails when Run calls the lead function after its context has ended, or when a round that fails
// before the win does not close its session.
func TestRegression35_ShutdownOfANodeThatNeverLed(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	leader := stand(t, c.Client(t), name, "leader", untilTheEnd, lasting(time.Minute))
	l := etcdtest.Take(t, leader.won, "the win")
	unmistakable := 43 * time.Second // no other lease has this TTL
	type scene struct {
		change func(*elector.Config)
		// ready waits until the node is in the state in which it is to be stopped; undo ends the
		// fault after the end of Run.
		ready, undo func(n *node)
		lease       bool // whether a lease without a key may be left to expire
	}
	scenes := map[string]func(t *testing.T, host *etcdtest.Host) scene{
		"while it follows": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{ready: func(n *node) { n.follows(t, leader, l.Token()) }}
		},
		"while it waits for clients": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{
				change: func(cfg *elector.Config) {
					cfg.Source = func(ctx context.Context) (elector.Clients, error) {
						<-ctx.Done()
						return elector.Clients{}, errNone
					}
				},
				ready: func(n *node) {
					etcdtest.Eventually(t, func() bool { return n.rounds.Load() == 1 }, "it asks")
				},
			}
		},
		"in the back-off": func(t *testing.T, _ *etcdtest.Host) scene {
			return scene{
				change: func(cfg *elector.Config) {
					cfg.Source = func(context.Context) (elector.Clients, error) { return elector.Clients{}, errNone }
					cfg.Backoff = func(int) time.Duration { return time.Hour }
				},
				ready: func(n *node) {
					n.until(t, "refused", func(s elector.Status) bool { return errors.Is(s.Reason(), errNone) })
				},
			}
		},
		"while its lease is granted": func(t *testing.T, host *etcdtest.Host) scene {
			return scene{
				lease: true,
				ready: func(*node) {
					etcdtest.Eventually(t, func() bool { return host.Stats().Held.Inbound > 0 }, "the request is held")
				},
				undo: func(*node) { host.Mend() },
			}
		},
		"while it registers": func(t *testing.T, host *etcdtest.Host) scene {
			swallowed := host.SwallowNextReply(etcdtest.Containing(name + "/"))
			return scene{ready: func(*node) { require.NoError(t, swallowed.Wait(etcdtest.Context(t))) }}
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
			n := stand(t, cli, name, "n", untilTheEnd, lasting(unmistakable), func(cfg *elector.Config) {
				if s.change != nil {
					s.change(cfg)
				}
			})
			s.ready(n)
			begin := time.Now()
			require.ErrorIs(t, n.end(t), context.Canceled)
			require.Less(t, time.Since(begin), atOnce)
			require.Zero(t, n.calls.Load(), "leader code ran")
			require.Equal(t, elector.Unknown, n.Status().Role())
			if s.undo != nil {
				s.undo(n)
				require.NoError(t, etcdtest.Err(cli.Get(etcdtest.Context(t), "what was held has arrived")))
			}
			require.Equal(t, []string{l.Key()}, queueOf(t, c, name), "a key is left")
			if !s.lease {
				require.Zero(t, leasesOf(t, c, unmistakable), "a lease is left")
			}
		})
	}
	require.NoError(t, l.Err())
}

// errStuck is the error of a gated lease.
var errStuck = errors.New("the application is stuck")

// gated renews a lease only while the application is live.
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

// Row 36 (a 48-minute outage of PD). The application is stuck, its network works. In other
// implementations the lease is renewed for ever. In Eldest renewals use the Lease that the source
// of clients returns, so a program can make them depend on the application's liveness: leadership
// then ends within the TTL and passes on.
//
// Fails when renewals do not use Clients.Lease.
func TestRegression36_StuckApplication(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	const life = 5 * time.Second
	var stuck atomic.Bool
	cli := c.Client(t)
	n := stand(t, cli, name, "n", untilTheEnd, lasting(life), func(cfg *elector.Config) {
		cfg.Source = elector.Always(elector.Clients{KV: cli, Watcher: cli, Lease: gated{cli, &stuck}, Majority: cli})
	})
	l := etcdtest.Take(t, n.won, "the win")
	next := stand(t, c.Client(t), name, "next", untilTheEnd)
	next.follows(t, n, l.Token())
	stuck.Store(true)
	<-time.After(life) // after this time a tenure that was not renewed has ended
	require.Error(t, l.Err(), "it leads for longer than its lease")
	etcdtest.Take(t, l.Done(), "the end of the tenure")
	second := etcdtest.Take(t, next.won, "the successor's win")
	stuck.Store(false)
	n.follows(t, next, second.Token())
}
