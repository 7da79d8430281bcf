package elector_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
)

// G7 over two Runs: the second Run waits for the lead function that the first Run left behind.
func TestSecondRunWaitsForTheStuckFunction(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	e, err := elector.New(config(name, "n", cli, func(cfg *elector.Config) { cfg.Drain = time.Millisecond }))
	require.NoError(t, err)
	var running sync.Mutex
	began, release := make(chan struct{}, 1024), make(chan struct{})
	lead := func(context.Context, *elector.Leadership) error {
		if !running.TryLock() {
			t.Error("overlaps itself")
		}
		defer running.Unlock()
		began <- struct{}{}
		<-release
		return nil
	}
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	go func() { <-began; cancel() }()
	require.ErrorIs(t, e.Run(ctx, lead), eldest.ErrStuck)

	waitsForTheStuck(t, e, lead, began, func() { release <- struct{}{} })
	close(release)
}

// waitsForTheStuck requires that a later Run waits for the function that an earlier one left behind.
// That function sends to began when it is called, and returns after release.
func waitsForTheStuck(t *testing.T, e *elector.Elector, lead func(context.Context, *elector.Leadership) error, began chan struct{}, release func()) {
	t.Helper()
	require.ErrorIs(t, e.Run(etcdtest.ContextFor(t, 100*time.Millisecond), lead), eldest.ErrStuck, "not while the first one runs")
	require.Empty(t, began)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	done := etcdtest.Go(func() error { return e.Run(ctx, lead) })
	release()
	etcdtest.Take(t, began, "the second call")
	cancel()
	require.ErrorIs(t, etcdtest.Take(t, done, "the end of Run"), context.Canceled)
}

// The error of a lead function that returns after its context has ended is logged.
func TestLateErrorIsLogged(t *testing.T) {
	t.Parallel()
	var log etcdtest.Paper
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	e, err := elector.New(config(etcdtest.Election(t), "n", etcdtest.Shared(t).Client(t), func(cfg *elector.Config) {
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}))
	require.NoError(t, err)
	require.ErrorIs(t, e.Run(ctx, func(ctx context.Context, _ *elector.Leadership) error {
		cancel()
		<-ctx.Done()
		return errEnough
	}), context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), errEnough.Error()) }, etcdtest.Patience, time.Millisecond)
}

// A lead function that ends its goroutine gives leadership up.
func TestGoexit(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	n := &node{id: "n"}
	tenures := make(chan *elector.Leadership, 1024)
	n.runWith(t, config(name, "n", cli), func(ctx context.Context, l *elector.Leadership) error {
		tenures <- l
		if len(tenures) == 1 {
			runtime.Goexit()
		}
		<-ctx.Done()
		return nil
	})
	require.Eventually(t, func() bool { return len(tenures) == 2 }, etcdtest.Patience, time.Millisecond)
}

// The error of a lead function that returns when its tenure is over, before anything else has
// noticed that, is logged.
func TestErrorAtTheDeadlineIsLogged(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		var log etcdtest.Paper
		clock := etcdtest.NewClock()
		n := &node{id: "n"}
		n.runWith(t, config("deadline", "n", cli, func(cfg *elector.Config) {
			cfg.Session.Clock = clock
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}), func(context.Context, *elector.Leadership) error {
			if clock.Now() > time.Hour {
				return nil
			}
			clock.Jump(time.Hour) // the machine was suspended
			return errEnough
		})
		time.Sleep(time.Second)
		require.Contains(t, log.String(), errEnough.Error())
		require.True(t, strings.Contains(log.String(), eldest.ErrSessionLost.Error()))
	})
}

// The error of a lead function that returns after Config.Drain is logged.
func TestErrorAfterDrainIsLogged(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		var log etcdtest.Paper
		tenures := 0
		(&node{id: "n"}).runWith(t, config("late", "n", cli, virtual, func(cfg *elector.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}), func(ctx context.Context, l *elector.Leadership) error {
			if tenures++; tenures > 1 {
				<-ctx.Done()
				return nil
			}
			_, err := cli.Delete(context.Background(), l.Key())
			require.NoError(t, err)
			<-ctx.Done()
			time.Sleep(time.Minute)
			return errEnough
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Contains(t, log.String(), errEnough.Error())
	})
}
