package regressions

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 1. A leads, B and C wait; B, a waiter, leaves. Elsewhere (a C++ client) C took
// the end of its predecessor for its own victory: two leaders. Here C stays a waiter
// and waits on A from now on.
//
// Fails when election.Candidate.await returns a win as soon as the predecessor's key
// is gone.
func TestRegression01_WaiterInTheMiddleLeaves(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"withdraws", "is revoked", "is deleted"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			a, b, waiter := join(t, c.Client(t), name), join(t, c.Client(t), name), join(t, c.Client(t), name)
			leader := a.lead(t)
			middle := b.queue(t)
			result := waiter.queue(t)
			require.Equal(t, b.candidate.Key(), etcdtest.Take(t, waiter.waiting, "its predecessor").Predecessor.Key)
			switch way {
			case "withdraws":
				require.NoError(t, b.candidate.Withdraw(etcdtest.Context(t)))
			case "is revoked":
				_, err := c.Client(t).Revoke(etcdtest.Context(t), b.session.ID())
				require.NoError(t, err)
			case "is deleted":
				_, err := c.Client(t).Delete(etcdtest.Context(t), b.candidate.Key())
				require.NoError(t, err)
			}
			fails(t, middle)
			require.Equal(t, a.candidate.Key(), etcdtest.Take(t, waiter.waiting, "its new predecessor").Predecessor.Key)
			require.Empty(t, result, "it was elected beside the leader")
			require.NoError(t, leader.Err())
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.Greater(t, wins(t, result).Token(), leader.Token())
		})
	}
}

// Row 2, the waiter. An operator deletes its key, or puts it again without the lease.
// Elsewhere it goes on waiting and is "elected" without a key. Here the campaign ends at once,
// with a typed error; so it does when its session is closed.
//
// Fails when election.Candidate.watchOwn is not started.
func TestRegression02_KeyDeletedWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"deleted", "put without a lease", "its session is closed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).lead(t)
			waiter := join(t, c.Client(t), name)
			result := waiter.queue(t)
			etcdtest.Take(t, waiter.waiting, "its wait")
			begin, reason := time.Now(), eldest.ErrDeposed
			var err error
			switch way {
			case "deleted":
				_, err = c.Client(t).Delete(etcdtest.Context(t), waiter.candidate.Key())
			case "put without a lease":
				_, err = c.Client(t).Put(etcdtest.Context(t), waiter.candidate.Key(), "by hand")
			default:
				err, reason = waiter.session.Close(etcdtest.Context(t)), eldest.ErrClosed
			}
			require.NoError(t, err)
			o := fails(t, result)
			require.ErrorIs(t, o.err, reason, "why the waiter's campaign ended")
			var op *eldest.OpError
			require.ErrorAs(t, o.err, &op)
			require.Equal(t, waiter.candidate.Key(), op.Key)
			require.Less(t, o.at.Sub(begin), atOnce, "the waiter heard of its loss too late")
			// The leader has nothing to do with it, and the waiter may stand again.
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is gone")
			require.NoError(t, leader.Err())
			if way == "its session is closed" {
				return // not on a session that is over
			}
			result = waiter.queue(t)
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			wins(t, result)
		})
	}
}

// Row 2, the leader. Elsewhere the tenure goes on until the lease ends. Here it ends
// in milliseconds, with the cause "deposed"; so it does when the key is put again by
// hand, without the lease.
//
// Fails when election.Candidate.watchOwn is not started, or watches deletions only.
func TestRegression02_KeyDeletedWhileLeading(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for _, way := range []string{"deleted", "put without a lease", "deleted and put again"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			leader := join(t, c.Client(t), etcdtest.Election(t)).lead(t)
			begin := time.Now()
			var err error
			if way != "put without a lease" {
				_, err = admin.Delete(etcdtest.Context(t), leader.Key())
				require.NoError(t, err)
			}
			if way != "deleted" {
				_, err = admin.Put(etcdtest.Context(t), leader.Key(), "by hand")
			}
			require.NoError(t, err)
			etcdtest.Take(t, leader.Done(), "the end of the tenure")
			require.Less(t, time.Since(begin), atOnce)
			require.ErrorIs(t, leader.Err(), eldest.ErrDeposed)
			require.False(t, leader.Holds(0))
		})
	}
}

// Row 3 (etcd #19597). The lease of a waiter is revoked, then the leader goes.
// Elsewhere the waiter reports itself leader, without a key. Here it never does, and
// says at once what happened.
//
// Fails when neither the own key is watched nor proven at the win
// (txn.ByCreateRevision.Ahead without present).
func TestRegression03_LeaseGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	leader := join(t, c.Client(t), name).lead(t)
	waiter := join(t, c.Client(t), name)
	result := waiter.queue(t)
	etcdtest.Take(t, waiter.waiting, "its wait")
	begin := time.Now()
	_, err := c.Client(t).Revoke(etcdtest.Context(t), waiter.session.ID())
	require.NoError(t, err)
	o := fails(t, result)
	require.Less(t, o.at.Sub(begin), atOnce, "the waiter heard of its loss too late")
	require.ErrorIs(t, o.err, eldest.ErrDeposed)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	_, err = waiter.candidate.Campaign(etcdtest.Context(t))
	require.ErrorIs(t, err, eldest.ErrSessionLost, "a campaign on a lease that is gone")
	require.Empty(t, queueOf(t, c, name))
}

// Row 3, when leader and waiter lose their leases at one revision or nearly so: the
// waiter's news of its own loss may come after that of its predecessor's.
func TestRegression03_LeaseGoneWithTheLeaders(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	for range 10 {
		a, b := join(t, c.Client(t), name), join(t, c.Client(t), name)
		a.lead(t)
		result := b.queue(t)
		etcdtest.Take(t, b.waiting, "its wait")
		_, err := c.Client(t).Revoke(etcdtest.Context(t), b.session.ID())
		require.NoError(t, err)
		_, err = c.Client(t).Revoke(etcdtest.Context(t), a.session.ID())
		require.NoError(t, err)
		fails(t, result)
	}
}

// hearsOnly is deaf to all keys but one: their watches are confirmed and tell nothing.
type hearsOnly struct {
	clientv3.Watcher
	key string
}

func (w hearsOnly) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	events := w.Watcher.Watch(ctx, key, opts...)
	if key == w.key {
		return events
	}
	deaf := make(chan clientv3.WatchResponse, 1)
	go func() {
		defer close(deaf)
		if confirmed, ok := <-events; ok {
			deaf <- confirmed
		}
		for range events { // until ctx ends
		}
	}()
	return deaf
}

// Row 3, when the news of its own loss never reaches the waiter at all. Then the proof
// alone stands between it and a tenure without a key: it asks for its own key at the
// revision at which its predecessor went.
//
// Fails when txn.ByCreateRevision.Ahead does not look at the own key.
func TestRegression03_OnlyTheProofTells(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"deleted", "revoked"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).lead(t)
			cli := c.Client(t)
			waiter := join(t, cli, name, func(_ *lease.Config, e *election.Config) {
				e.Watcher, e.Recheck = hearsOnly{cli, leader.Key()}, -1
			})
			result := waiter.queue(t)
			etcdtest.Take(t, waiter.waiting, "its wait")
			var err error
			if way == "deleted" {
				_, err = c.Client(t).Delete(etcdtest.Context(t), waiter.candidate.Key())
			} else {
				_, err = c.Client(t).Revoke(etcdtest.Context(t), waiter.session.ID())
			}
			require.NoError(t, err)
			require.Empty(t, result, "INVALID: it has heard of its loss")
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.ErrorIs(t, fails(t, result).err, eldest.ErrDeposed)
			require.Empty(t, queueOf(t, c, name))
		})
	}
}

// Rows 2 and 3 on the same stage, with etcd's package: its waiter is elected without a
// key, whether an operator deleted it or its lease is gone.
func TestRegression02And03_TheFaultOfEtcdsPackage(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"key deleted", "lease revoked"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			_, leader := theirs(t, c.Client(t), name, 60)
			require.NoError(t, leader.Campaign(etcdtest.Context(t), "a"))
			s, waiter := theirs(t, c.Client(t), name, 60)
			result := make(chan error, 1)
			go func() { result <- waiter.Campaign(etcdtest.Context(t), "b") }()
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "the waiter is in the queue")
			var err error
			if way == "key deleted" {
				_, err = c.Client(t).Delete(etcdtest.Context(t), theirKey(s, name))
			} else {
				_, err = c.Client(t).Revoke(etcdtest.Context(t), s.Lease())
			}
			require.NoError(t, err)
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.NoError(t, etcdtest.Take(t, result, "a win without a key"), "the fault is mended?")
			require.Empty(t, queueOf(t, c, name))
		})
	}
}

// Rows 2 and 3: who loses its key or its lease hears of it in milliseconds, as a leader and
// in the queue.
//
// Fails when anything is waited for between the news and its telling.
func TestRegression02And03_ToldInMilliseconds(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for name, rob := range map[string]func(t *testing.T, p *participant) error{
		"the key": func(t *testing.T, p *participant) error {
			_, err := admin.Delete(etcdtest.Context(t), p.candidate.Key())
			return err
		},
		"the lease": func(t *testing.T, p *participant) error {
			_, err := admin.Revoke(etcdtest.Context(t), p.session.ID())
			return err
		},
	} {
		t.Run(name+" of a leader", func(t *testing.T) {
			t.Parallel()
			cli := c.Client(t)
			inMilliseconds(t, func() time.Duration {
				p := join(t, cli, etcdtest.Election(t))
				leader := p.lead(t)
				require.NoError(t, rob(t, p))
				begin := time.Now()
				etcdtest.Take(t, leader.Done(), "the end of the tenure")
				require.ErrorIs(t, leader.Err(), eldest.ErrDeposed)
				return time.Since(begin)
			})
		})
		t.Run(name+" of a waiter", func(t *testing.T) {
			t.Parallel()
			cli, election := c.Client(t), etcdtest.Election(t)
			join(t, c.Client(t), election).lead(t)
			inMilliseconds(t, func() time.Duration {
				p := join(t, cli, election)
				result := p.queue(t)
				require.NoError(t, rob(t, p))
				begin := time.Now()
				require.ErrorIs(t, fails(t, result).err, eldest.ErrDeposed)
				return time.Since(begin)
			})
		})
	}
}
