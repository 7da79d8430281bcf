package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 1. A leads, B and C wait; B, a waiter, leaves. In another implementation (a C++ client) C
// took the end of its predecessor for its own win: two leaders. In Eldest C remains a waiter and
// waits for A from now on.
//
// Fails when a waiter wins as soon as its predecessor's key is deleted, without reading which
// candidates are older.
func TestRegression01_WaiterInTheMiddleLeaves(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"withdraws", "is revoked", "is deleted"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			a, b, waiter := join(t, c.Client(t), name), join(t, c.Client(t), name), join(t, c.Client(t), name)
			leader := a.Lead(t)
			middle := b.Queue(t)
			result := waiter.Queue(t)
			require.Equal(t, b.Candidate.Key(), etcdtest.Take(t, waiter.Waiting, "its predecessor").Predecessor.Key)
			switch way {
			case "withdraws":
				require.NoError(t, b.Candidate.Withdraw(etcdtest.Context(t)))
			case "is revoked":
				require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), b.Session.ID())))
			case "is deleted":
				require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), b.Candidate.Key())))
			}
			electiontest.Fails(t, middle)
			require.Equal(t, a.Candidate.Key(), etcdtest.Take(t, waiter.Waiting, "its new predecessor").Predecessor.Key)
			require.Empty(t, result, "it was elected beside the leader")
			require.NoError(t, leader.Err())
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.Greater(t, electiontest.Wins(t, result).Token(), leader.Token())
		})
	}
}

// Row 2, the waiter. An operator deletes its key, or puts it again without the lease. In other
// implementations it continues to wait and is "elected" without a key. In Eldest the campaign ends
// at once, with a typed error; the same happens when its session is closed.
//
// Fails when a waiter's own key is not watched.
func TestRegression02_KeyDeletedWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"deleted", "put without a lease", "its session is closed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).Lead(t)
			waiter := join(t, c.Client(t), name)
			result := waiter.Queue(t)
			etcdtest.Take(t, waiter.Waiting, "its wait")
			begin, reason := time.Now(), eldest.ErrDeposed
			var err error
			switch way {
			case "deleted":
				_, err = c.Client(t).Delete(etcdtest.Context(t), waiter.Candidate.Key())
			case "put without a lease":
				_, err = c.Client(t).Put(etcdtest.Context(t), waiter.Candidate.Key(), "by hand")
			default:
				err, reason = waiter.Session.Close(etcdtest.Context(t)), eldest.ErrClosed
			}
			require.NoError(t, err)
			o := electiontest.Fails(t, result)
			require.ErrorIs(t, o.Reason, reason, "why the waiter's campaign ended")
			var op *eldest.OpError
			require.ErrorAs(t, o.Reason, &op)
			require.Equal(t, waiter.Candidate.Key(), op.Key)
			require.Less(t, o.At.Sub(begin), atOnce, "the waiter heard of its loss too late")
			// The leader is not affected, and the waiter may campaign again.
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 1 }, "its key is gone")
			require.NoError(t, leader.Err())
			if way == "its session is closed" {
				return // not on a session that has ended
			}
			result = waiter.Queue(t)
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			electiontest.Wins(t, result)
		})
	}
}

// Row 2, the leader. In other implementations the tenure lasts until the lease ends. In Eldest it
// ends in milliseconds, with the cause "deposed"; the same happens when the key is put again by
// hand, without the lease.
//
// Fails when the leader's own key is not watched, or only its deletion is.
func TestRegression02_KeyDeletedWhileLeading(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for _, way := range []string{"deleted", "put without a lease", "deleted and put again"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			leader := join(t, c.Client(t), etcdtest.Election(t)).Lead(t)
			begin := time.Now()
			var err error
			if way != "put without a lease" {
				require.NoError(t, etcdtest.Err(admin.Delete(etcdtest.Context(t), leader.Key())))
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

// Row 3 (etcd #19597). The lease of a waiter is revoked, then the leader leaves. In other
// implementations the waiter reports that it leads, without a key. In Eldest it never does, and its
// campaign ends at once with the reason.
//
// Fails when the candidate's own key is neither watched nor proven at the win
// (txn.ByCreateRevision.Ahead without present).
func TestRegression03_LeaseGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	leader := join(t, c.Client(t), name).Lead(t)
	waiter := join(t, c.Client(t), name)
	result := waiter.Queue(t)
	etcdtest.Take(t, waiter.Waiting, "its wait")
	begin := time.Now()
	require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), waiter.Session.ID())))
	o := electiontest.Fails(t, result)
	require.Less(t, o.At.Sub(begin), atOnce, "the waiter heard of its loss too late")
	require.ErrorIs(t, o.Reason, eldest.ErrDeposed)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	require.ErrorIs(t, etcdtest.Err(waiter.Candidate.Campaign(etcdtest.Context(t))), eldest.ErrSessionLost, "a campaign on a lease that is gone")
	require.Empty(t, queueOf(t, c, name))
}

// Row 3, when leader and waiter lose their leases at one revision or nearly so: the event of the
// waiter's own loss may come after that of its predecessor's.
func TestRegression03_LeaseGoneWithTheLeaders(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	for range 10 {
		a, b := join(t, c.Client(t), name), join(t, c.Client(t), name)
		a.Lead(t)
		result := b.Queue(t)
		etcdtest.Take(t, b.Waiting, "its wait")
		require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), b.Session.ID())))
		require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), a.Session.ID())))
		electiontest.Fails(t, result)
	}
}

// Row 3, when the event of its own loss never reaches the waiter. Then only the proof prevents a
// tenure without a key: it reads the candidate's own key at the revision at which its predecessor's
// key was deleted.
//
// Fails when txn.ByCreateRevision.Ahead does not read the candidate's own key.
func TestRegression03_OnlyTheProofTells(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, way := range []string{"deleted", "revoked"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			leader := join(t, c.Client(t), name).Lead(t)
			cli := c.Client(t)
			waiter := join(t, cli, name, func(_ *lease.Config, e *election.Config) {
				e.Watcher, e.WatchCheck = etcdtest.Deaf(cli, leader.Key()), -1
			})
			result := waiter.Queue(t)
			etcdtest.Take(t, waiter.Waiting, "its wait")
			var err error
			if way == "deleted" {
				_, err = c.Client(t).Delete(etcdtest.Context(t), waiter.Candidate.Key())
			} else {
				_, err = c.Client(t).Revoke(etcdtest.Context(t), waiter.Session.ID())
			}
			require.NoError(t, err)
			require.Empty(t, result, "INVALID: it has heard of its loss")
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			require.ErrorIs(t, electiontest.Fails(t, result).Reason, eldest.ErrDeposed)
			require.Empty(t, queueOf(t, c, name))
		})
	}
}

// Rows 2 and 3 in the same situation, with etcd's package: its waiter is elected without a key,
// whether an operator deleted the key or its lease was revoked.
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
			result := etcdtest.Go(func() error { return waiter.Campaign(etcdtest.Context(t), "b") })
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

// Rows 2 and 3: a leader or a waiter that loses its key or its lease is notified in milliseconds.
//
// Fails when there is any wait between the event and the notification.
func TestRegression02And03_ToldInMilliseconds(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	admin := c.Client(t)
	for name, rob := range map[string]func(t *testing.T, p *participant) error{
		"the key": func(t *testing.T, p *participant) error {
			_, err := admin.Delete(etcdtest.Context(t), p.Candidate.Key())
			return err
		},
		"the lease": func(t *testing.T, p *participant) error {
			_, err := admin.Revoke(etcdtest.Context(t), p.Session.ID())
			return err
		},
	} {
		t.Run(name+" of a leader", func(t *testing.T) {
			t.Parallel()
			cli := c.Client(t)
			inMilliseconds(t, func() time.Duration {
				p := join(t, cli, etcdtest.Election(t))
				leader := p.Lead(t)
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
			join(t, c.Client(t), election).Lead(t)
			inMilliseconds(t, func() time.Duration {
				p := join(t, cli, election)
				result := p.Queue(t)
				require.NoError(t, rob(t, p))
				begin := time.Now()
				require.ErrorIs(t, electiontest.Fails(t, result).Reason, eldest.ErrDeposed)
				return time.Since(begin)
			})
		})
	}
}
