package observe_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// G6: the queue is empty except for an old foreign key, and the stream receives nothing. A liveness
// check must find a new candidate: it reads the newest key.
//
// The test fails if an empty queue is checked with the first key of the range, which is the foreign
// one and as old as the view.
func TestWatchCheckSeesPastAForeignKey(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, keys.Prefix(s.Election)+"!notes", "foreign")))
	w := &deafAtFirst{Watcher: s.Client}
	o := s.observer(listening, func(cfg *observe.Config) { cfg.Watcher = w })
	sub := o.Subscribe()
	require.Equal(t, eldest.Nobody, s.next(sub).Kind)
	s.put(1, "v")
	s.led(sub, 1, "v")
}

// streams counts the watch streams that etcd's clients keep in this process.
func streams() int {
	stacks := make([]byte, 1<<20)
	for {
		if n := runtime.Stack(stacks, true); n < len(stacks) {
			return bytes.Count(stacks[:n], []byte("watchGRPCStream).run("))
		}
		stacks = make([]byte, 2*len(stacks))
	}
}

// etcd's client keeps a watch stream that it could not open, with its goroutines, for as long as
// the client lives. However long etcd is unavailable, there must be few of them.
//
// The test fails if another stream is opened after each attempt that timed out, whatever the cause:
// this outage then costs one stream for each attempt.
func TestFewWatchStreamsWhileEtcdIsAway(t *testing.T) {
	s := newStageOn(t, etcdtest.Start(t, etcdtest.Config{}))
	require.Eventually(t, func() bool { return streams() == 0 }, 2*etcdtest.Patience, time.Millisecond, "of earlier tests")
	var failures atomic.Int64
	o := s.observer(func(cfg *observe.Config) {
		cfg.Timeout, cfg.WatchCheck = 50*time.Millisecond, 50*time.Millisecond
		cfg.Backoff = func(int) time.Duration { failures.Add(1); return time.Millisecond }
	})
	sub := o.Subscribe()
	s.is(sub, eldest.Nobody)
	require.NoError(t, s.Cluster.Member(0).Kill())
	s.is(sub, eldest.Unknown)
	already := failures.Load()
	require.Eventually(t, func() bool { return failures.Load() >= already+40 }, 2*etcdtest.Patience, time.Millisecond)
	require.LessOrEqual(t, streams(), 4)

	require.NoError(t, s.Cluster.Restart(s.Ctx, 0))
	s.is(sub, eldest.Nobody)
	etcdtest.Reachable(t, s.Admin)
	s.put(1, "v")
	s.led(sub, 1, "v")
	require.LessOrEqual(t, streams(), 4)
}

// One member of three does not respond; the client does not notice that. A query that is sent to
// this member costs one timeout, and another member answers it.
//
// The test fails if the attempts have no timeout of their own: every third query then hangs until
// its context ends, or until the client's keepalive closes the connection, after at least ten
// seconds.
func TestQueriesWhereOneMemberIsSilent(t *testing.T) {
	t.Parallel()
	s := newStageOn(t, etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond}))
	s.put(1, "v")
	host := s.Cluster.Host(t)
	cli := host.Client(t)
	for range 6 { // connect to all of them
		require.NoError(t, etcdtest.Err(cli.Get(s.Ctx, s.Election)))
	}
	host.Proxy(0).Drop(etcdtest.BothWays)
	within := func() context.Context {
		ctx, cancel := context.WithTimeout(s.Ctx, 9*observe.DefaultTimeout)
		t.Cleanup(cancel)
		return ctx
	}
	before := host.Stats().Dropped.Inbound
	for host.Stats().Dropped.Inbound == before { // until a request was sent to the unavailable member
		leader, err := observe.LeaderOf(within(), cli, s.Election)
		require.NoError(t, err)
		require.Equal(t, int64(1), leader.Lease)
	}
	for range 3 {
		queue, err := observe.Queue(within(), cli, nil, s.Election)
		require.NoError(t, err)
		require.Len(t, queue, 1)
	}
}

// The member that carries the watch drops everything and closes no connection, while the leader stays.
// Changes reports a registration behind it nevertheless, and Positions the position of that candidate,
// as soon as a change of the leader would be.
//
// The test fails if only the leader's key is checked.
func TestSilentWatchBehindTheLeader(t *testing.T) {
	for name, begin := range map[string]func(s *stage, cfg func(*observe.Config)) (registered func()){
		"changes": func(s *stage, cfg func(*observe.Config)) func() {
			f := s.changes(cfg)
			queued := func(n int) {
				for f.update().Queue != n {
				}
			}
			queued(2)
			return func() { queued(3) }
		},
		"positions": func(s *stage, cfg func(*observe.Config)) func() {
			positions := s.observer(cfg).Positions()
			ahead := func(n int) {
				for {
					p, err := positions.Next(s.Ctx)
					require.NoError(t, err)
					if p.Kind == eldest.Led && p.Ahead == n {
						return
					}
				}
			}
			ahead(-1)
			return func() { ahead(2) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageOn(t, etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond}))
			h := s.Cluster.Host(t)
			cli := h.Client(t)
			s.put(1, "v")
			s.put(2, "v")
			registered := begin(s, func(cfg *observe.Config) {
				cfg.KV, cfg.Watcher, cfg.Key = cli, cli, s.key(3)
				cfg.Timeout, cfg.WatchCheck = 500*time.Millisecond, 300*time.Millisecond
			})
			before := make([]int64, s.Cluster.Size())
			for i := range before {
				before[i] = h.Proxy(i).Stats().Passed.Outbound
			}
			const events = 100 // the checks take fewer answers meanwhile
			for i := range events {
				s.put(2, fmt.Sprint(i))
			}
			etcdtest.Eventually(t, func() bool {
				for i := range before {
					if h.Proxy(i).Stats().Passed.Outbound-before[i] >= events {
						h.Proxy(i).Drop(etcdtest.BothWays)
						return true
					}
				}
				return false
			}, "the member that carries the watch")
			begun := time.Now()
			s.put(3, "v")
			registered()
			require.Less(t, time.Since(begun), 9*time.Second, "gRPC's keepalive ends the connection after ten seconds at the earliest")
		})
	}
}
