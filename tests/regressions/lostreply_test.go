package regressions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

var errMine = errors.New("mine")

// Row 4. The reply to the registration is lost by a reset. In other implementations the campaign
// fails and its key stays, kept alive by the session: all candidates wait behind an orphaned key.
// In Eldest the key is adopted, whichever call registers.
//
// Fails when txn.ByCreateRevision.Enter has no Else branch, or when the registration is not
// repeated after the first error.
func TestRegression04_RegistrationReplyLost(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for call, win := range map[string]func(context.Context, *election.Candidate) (*election.Leadership, error){
		"campaign": func(ctx context.Context, c *election.Candidate) (*election.Leadership, error) { return c.Campaign(ctx) },
		"try":      func(ctx context.Context, c *election.Candidate) (*election.Leadership, error) { return c.Try(ctx) },
		"register": func(ctx context.Context, c *election.Candidate) (*election.Leadership, error) {
			place, err := c.Register(ctx)
			if err != nil || place.Predecessor != "" {
				return nil, fmt.Errorf("behind %q: %w", place.Predecessor, err)
			}
			return c.Await(ctx)
		},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			host := c.Host(t)
			p := join(t, host.Client(t), name, func(_ *lease.Config, e *election.Config) { e.Value = []byte("mine") })
			lost := host.SwallowNextReply(etcdtest.Containing(p.Candidate.Key()))
			leader, err := win(etcdtest.Context(t), p.Candidate)
			require.NoError(t, err, "a campaign that must be won")
			require.NoError(t, lost.Wait(etcdtest.Context(t)))
			require.True(t, etcdtest.Take(t, p.Registered, "its registration").Adopted)
			require.Equal(t, []string{leader.Key()}, queueOf(t, c, name))
			now, err := observe.LeaderOf(etcdtest.Context(t), c.Client(t), name)
			require.NoError(t, err)
			require.Equal(t, leader.Token(), now.Token)
			require.Equal(t, "mine", string(now.Value))
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.Empty(t, queueOf(t, c, name))
		})
	}
}

// Row 4, and the campaign is given up while the outcome is unknown: the key is removed. The next
// candidate does not wait behind an orphaned key.
//
// Fails when the unknown outcome of a registration is forgotten.
func TestRegression04_RegistrationReplyLostAndGivenUp(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"reset", "no answer"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			host := c.Host(t)
			p := join(t, host.Client(t), name)
			ctx, cancel := context.WithCancelCause(context.Background())
			if way == "reset" {
				lost := host.SwallowNextReply(etcdtest.Containing(p.Candidate.Key()))
				host.Refuse() // no new connection: the key cannot be read
				result := p.Campaign(ctx)
				require.NoError(t, lost.Wait(etcdtest.Context(t)))
				cancel(errMine)
				require.ErrorIs(t, electiontest.Fails(t, result).Reason, errMine)
				require.Len(t, queueOf(t, c, name), 1, "the stage: a key without a campaign")
			} else {
				host.Hold(etcdtest.Outbound)
				result := p.Campaign(ctx)
				etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is written")
				cancel(errMine)
				require.ErrorIs(t, electiontest.Fails(t, result).Reason, errMine)
			}
			behind := join(t, c.Client(t), name)
			result := behind.Queue(t)
			host.Mend()
			electiontest.Wins(t, result)
		})
	}
}

// Row 4, by a change of etcd's leader: the reply of the registration is on its way while etcd
// changes its leader, and one connection after the other breaks.
func TestRegression04_RegistrationDuringEtcdLeaderChange(t *testing.T) {
	t.Parallel()
	c := three(t)
	name := etcdtest.Election(t)
	for i := range 3 {
		host := c.Host(t)
		p := join(t, host.Client(t), name)
		lead, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
		host.Hold(etcdtest.Outbound)
		result := p.Campaign(etcdtest.Context(t))
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is written")
		require.NoError(t, c.MoveLeader(etcdtest.Context(t), (lead+1)%3))
		host.Reset()
		host.Mend()
		leader := electiontest.Wins(t, result)
		require.Equal(t, []string{leader.Key()}, queueOf(t, c, name), "round %d", i)
		require.NoError(t, leader.Resign(etcdtest.Context(t)))
	}
}

// compactingWatcher compacts the store right before the first watch is opened: after the read that
// precedes it.
type compactingWatcher struct {
	clientv3.Watcher
	once    sync.Once
	compact func()
}

func (w *compactingWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.once.Do(w.compact)
	return w.Watcher.Watch(ctx, key, opts...)
}

// busy writes some revisions and compacts them.
func busy(t *testing.T, c *etcdtest.Cluster) {
	t.Helper()
	cli := c.Client(t)
	for range 10 {
		require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), "busy", "")))
	}
	if _, err := c.Compact(etcdtest.Context(t)); !errors.Is(err, rpctypes.ErrCompacted) { // a parallel test has compacted meanwhile
		require.NoError(t, err)
	}
}

// Row 5 (etcd #21128), compaction between read and watch. In other implementations the campaign
// fails with "required revision has been compacted", or the observer's channel is closed. In Eldest
// both continue.
//
// Fails when a watch of internal/watch ends at a compaction.
func TestRegression05_CompactionBeforeTheWatch(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	compacting := func(cli *clientv3.Client) change {
		return func(_ *lease.Config, e *election.Config) {
			e.Watcher = &compactingWatcher{Watcher: cli, compact: func() { busy(t, c) }}
			// Only a compaction makes it watch again, not a late answer of a busy etcd.
			e.WatchCheck, e.Timeout = -1, etcdtest.Patience
		}
	}
	var recA, recB etcdtest.Recorder
	cliA, cliB := c.Client(t, recA.Attach), c.Client(t, recB.Attach)
	leader := join(t, cliA, name, compacting(cliA)).Lead(t)
	waiter := join(t, cliB, name, compacting(cliB))
	result := waiter.Queue(t)
	o, err := observe.New(observe.Config{
		Election: name, KV: c.Client(t), Watcher: &compactingWatcher{Watcher: c.Client(t), compact: func() { busy(t, c) }},
	})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	etcdtest.Take(t, waiter.Waiting, "its wait")
	// The server reports the compaction with some delay: then both watch again.
	etcdtest.Eventually(t, func() bool { return watches(&recA, leader.Key()) == 2 }, "the leader watches its key again")
	etcdtest.Eventually(t, func() bool { return watches(&recB, waiter.Candidate.Key()) == 2 }, "the waiter watches its key again")
	require.NoError(t, leader.Err())
	require.Empty(t, result)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	etcdtest.Eventually(t, func() bool { return o.State().Leader.Token == next.Token() }, "the observer follows")
	// The candidate's own key is still watched after the compaction.
	require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), next.Key())))
	etcdtest.Take(t, next.Done(), "the end of the tenure")
	require.ErrorIs(t, next.Err(), eldest.ErrDeposed)
}

// watches counts the requests to watch a key.
func watches(rec *etcdtest.Recorder, key string) int {
	n := 0
	for _, call := range rec.Calls("Watch") {
		if create := call.Request.(*etcdserverpb.WatchRequest).GetCreateRequest(); string(create.GetKey()) == key {
			n++
		}
	}
	return n
}

// Row 5, while waiting on a key without events: the connection breaks, and the client's watch
// resumes at a revision that was compacted long ago.
//
// Fails when a watch of internal/watch ends at a compaction.
func TestRegression05_CompactionWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	host := c.Host(t)
	leader := join(t, c.Client(t), name).Lead(t)
	waiter := join(t, host.Client(t), name)
	result := waiter.Queue(t)
	etcdtest.Take(t, waiter.Waiting, "its wait")
	o, err := observe.New(observe.Config{Election: name, KV: waiter.Client, Watcher: waiter.Client})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	etcdtest.Eventually(t, func() bool { return o.State().Leader.Token == leader.Token() }, "the observer has begun")
	host.Refuse()
	require.Positive(t, host.Reset())
	busy(t, c)
	host.Mend()
	busy(t, c)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	etcdtest.Eventually(t, func() bool { return o.State().Leader.Token == next.Token() }, "the observer follows")
	// etcd reports the compaction of a watch with some delay.
	etcdtest.Never(t, func() bool { return next.Err() != nil }, 500*time.Millisecond, "the compaction ends the tenure")
}
