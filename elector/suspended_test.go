package elector_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/lease"
)

func beating(cfg *elector.Config) { cfg.Session.Heartbeat.Timeout = lease.MinHeartbeat }

// While etcd does not respond, the tenure of a node is suspended and its status is Unknown; then it
// leads on in the same round, with the same token. A node that ends is replaced.
//
// The test fails if the round ends with the suspension, or if the other node leads.
func TestSuspendedNodeLeadsOn(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, _ *memetcd.Etcd) {
		calls := 0
		one := run(t, config("e", "one", cli, virtual, beating, func(cfg *elector.Config) {
			cfg.Standby = func(context.Context, *elector.Positions) { calls++ }
		}))
		l := etcdtest.Take(t, one.won, "the win")
		two := run(t, config("e", "two", cli, virtual, beating))
		two.follows(t, "one")
		for range 2 {
			link.Interrupt()
			s := one.becomes(t, elector.Unknown)
			require.ErrorIs(t, s.Reason(), eldest.ErrSuspended)
			time.Sleep(2 * lease.MinHeartbeat)
			link.Restore()
			next := etcdtest.Take(t, one.won, "the tenure that goes on")
			require.Equal(t, l.Token(), next.Token(), "another tenure")
			require.NoError(t, next.Err())
			require.Error(t, l.Err())
		}
		require.Equal(t, 1, calls, "the standby function runs once in a round")
		require.Empty(t, two.won)
		require.Error(t, one.end(t))
		require.Greater(t, etcdtest.Take(t, two.won, "the successor's win").Token(), l.Token())
	})
}

// Elections of a group share the heartbeats, and are suspended and resumed together.
func TestSuspendedGroupLeadsOn(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, _ *memetcd.Etcd) {
		elections := names(t, 20)
		g := group(t, cli, virtual, beating)
		g.run(untilOver, elections...)
		led := g.leads(len(elections))
		link.Interrupt()
		time.Sleep(2 * lease.MinHeartbeat)
		link.Restore()
		for name, l := range g.leads(len(elections)) {
			require.Equal(t, led[name].Token(), l.Token())
		}
	})
}

// The error of a lead function that wraps another tenure's suspension, of which it knows, is the
// reason why the round ended.
func TestSuspensionOfAnotherTenure(t *testing.T) {
	t.Parallel()
	theirs := fmt.Errorf("another election: %w", eldest.ErrSuspended)
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		n := &node{id: "n"}
		n.runWith(t, config("theirs", "n", cli, virtual, func(cfg *elector.Config) { cfg.Backoff = func(int) time.Duration { return time.Hour } }),
			func(context.Context, *elector.Leadership) error { return theirs })
		time.Sleep(time.Minute)
		require.ErrorIs(t, n.Status().Reason(), theirs)
		require.ErrorIs(t, n.Status().Reason(), eldest.ErrResigned)

		var log etcdtest.Paper
		g := group(t, cli, virtual, func(cfg *elector.Config) {
			cfg.Backoff = func(int) time.Duration { return time.Hour }
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		g.run(func(context.Context, *elector.Leadership) error { return theirs }, "g")
		time.Sleep(time.Minute)
		require.Contains(t, log.String(), "another election")
	})
}

// A round that led for long before its tenure was suspended was stable, however short the rest of
// the tenure was.
func TestStableOverASuspension(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		inMemory(t, func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, _ *memetcd.Etcd) {
			attempts, tenures := make(chan int, 100), 0
			change := func(cfg *elector.Config) {
				cfg.Stable = time.Minute
				cfg.Backoff = func(attempt int) time.Duration { attempts <- attempt; return time.Second }
			}
			lead := func(ctx context.Context, _ *elector.Leadership) error {
				switch tenures++; tenures {
				case 1, 2, 4: // 4 is the rest of 3
					return errEnough
				}
				<-ctx.Done()
				return nil
			}
			if grouped {
				group(t, cli, virtual, beating, change).run(lead, "stable")
			} else {
				(&node{id: "n"}).runWith(t, config("stable", "n", cli, virtual, beating, change), lead)
			}
			time.Sleep(time.Hour)
			link.Interrupt()
			time.Sleep(2 * lease.MinHeartbeat)
			link.Restore()
			time.Sleep(time.Minute / 2)
			synctest.Wait()
			require.Equal(t, 0, <-attempts)
			require.Equal(t, 1, <-attempts)
			require.Equal(t, 0, <-attempts, "the round led for an hour")
		})
	}
}

// The error of a lead function that returns when its tenure is suspended, or when Run ends, is logged.
func TestErrorInASuspensionIsLogged(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		for _, suspended := range []bool{false, true} {
			inMemory(t, func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, _ *memetcd.Etcd) {
				var log etcdtest.Paper
				change := func(cfg *elector.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
				called := 0
				lead := func(ctx context.Context, _ *elector.Leadership) error {
					called++
					<-ctx.Done()
					if called == 1 {
						return errEnough
					}
					return context.Cause(ctx)
				}
				var stop func()
				if grouped {
					g := group(t, cli, virtual, beating, change)
					g.run(lead, "g")
					stop = func() { g.stop("g") }
				} else {
					n := &node{id: "n"}
					n.runWith(t, config("n", "n", cli, virtual, beating, change), lead)
					stop = func() { _ = n.end(t) }
				}
				time.Sleep(time.Second)
				if suspended {
					link.Interrupt()
					time.Sleep(2 * lease.MinHeartbeat)
					link.Restore()
					time.Sleep(time.Second)
				} else {
					stop()
				}
				synctest.Wait()
				require.Equal(t, 1, strings.Count(log.String(), "returned an error after its context had ended"), log.String())
				require.Contains(t, log.String(), errEnough.Error())
			})
		}
	}
}
