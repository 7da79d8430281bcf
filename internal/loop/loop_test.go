package loop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func session(t *testing.T, cli *clientv3.Client) (*loop.Session, int64) {
	s := stream.New(stream.Config{
		Open: func(ctx context.Context) (pb.Watch_WatchClient, error) {
			return pb.NewWatchClient(cli.ActiveConnection()).Watch(ctx)
		},
		Backoff: retry.Default(),
	})
	granted, err := cli.Grant(t.Context(), 60)
	require.NoError(t, err)
	l := loop.NewSession(loop.Config{Timeout: 2 * time.Second, Backoff: retry.Default()}, int64(granted.ID), s)
	t.Cleanup(func() { l.End(eldest.ErrClosed); s.Close() })
	return l, int64(granted.ID)
}

func candidate(s *loop.Session, cli *clientv3.Client, election string, lease int64) *loop.Candidate {
	return s.Candidate(loop.CandidateConfig{KV: cli, Queue: txn.ByCreateRevision{}, Entry: txn.Entry{Election: election, Lease: lease}})
}

func TestHandover(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	ctx := t.Context()
	var all []*loop.Candidate
	for range 5 {
		s, lease := session(t, cli)
		all = append(all, candidate(s, cli, t.Name(), lease))
	}
	leading, err := all[0].Campaign(ctx)
	require.NoError(t, err)
	wins := make(chan *loop.Candidate)
	for _, c := range all[1:] {
		go func() {
			if _, err := c.Campaign(ctx); err == nil {
				wins <- c
			}
		}()
	}
	leader := all[0]
	for range 4 {
		require.NoError(t, leader.Leave(ctx, eldest.ErrResigned))
		leader = <-wins
	}
	require.ErrorIs(t, context.Cause(leading), eldest.ErrResigned)
	require.NoError(t, leader.Leave(ctx, eldest.ErrResigned))
	gone, cancel := context.WithCancelCause(ctx)
	why := errors.New("enough")
	cancel(why)
	_, err = leader.Campaign(gone)
	require.ErrorIs(t, err, why)
}

// A candidate whose key is deleted by hand is deposed, and may campaign again.
func TestDeposed(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	ctx := t.Context()
	s, lease := session(t, cli)
	c := candidate(s, cli, t.Name(), lease)
	leading, err := c.Campaign(ctx)
	require.NoError(t, err)
	_, err = cli.Delete(ctx, txn.Entry{Election: t.Name(), Lease: lease}.Key())
	require.NoError(t, err)
	<-leading.Done()
	require.ErrorIs(t, context.Cause(leading), eldest.ErrDeposed)
	leading, err = c.Campaign(ctx)
	require.NoError(t, err)
	s.End(eldest.ErrSessionLost)
	<-leading.Done()
	require.ErrorIs(t, context.Cause(leading), eldest.ErrSessionLost)
	_, err = c.Campaign(ctx)
	require.ErrorIs(t, err, eldest.ErrSessionLost)
}

// What a leader of each of many elections costs, all on one session.
func TestManyElections(t *testing.T) {
	const many = 2000
	cli := etcdtest.Shared(t).Client(t)
	s, lease := session(t, cli)
	first := candidate(s, cli, t.Name(), lease)
	_, err := first.Campaign(t.Context())
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	begun := time.Now()
	var wins sync.WaitGroup
	slots := make(chan struct{}, 64)
	for n := range many {
		wins.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			_, err := candidate(s, cli, fmt.Sprintf("%s-%d", t.Name(), n), lease).Campaign(t.Context())
			if err != nil {
				t.Error(err)
			}
		})
	}
	wins.Wait()
	t.Logf("%d wins in %v", many, time.Since(begun))
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes and %.3f goroutines an election", (after.HeapAlloc-before.HeapAlloc)/many, float64(runtime.NumGoroutine()-goroutines)/many)
}
