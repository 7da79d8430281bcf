package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// The tests of this file prove the harness, not the package they run: each
// drives etcd's own election into a fault it is known to have and asserts that
// the checkers report it.

// A candidate whose key was deleted while it waited is elected all the same
// when the leader goes.
func TestFindsPhantomWinAfterDeletion(t *testing.T) {
	phantom(t, 2*time.Second, []string{"I4", "I6"}, func(ctx context.Context, admin *clientv3.Client, key string, _ int64) error {
		_, err := admin.Delete(ctx, key)
		return err
	})
}

// The same with the lease revoked, when the leader goes before the candidate's
// next renewal would tell.
func TestFindsPhantomWinAfterRevocation(t *testing.T) {
	phantom(t, 0, []string{"I4"}, func(ctx context.Context, admin *clientv3.Client, _ string, lease int64) error {
		_, err := admin.Revoke(ctx, clientv3.LeaseID(lease))
		return err
	})
}

// phantom removes the key of the waiting candidate, lets the leader go after a
// while, and expects the invariants to be found violated.
func phantom(t *testing.T, while time.Duration, broken []string, remove func(ctx context.Context, admin *clientv3.Client, key string, lease int64) error) {
	rig.Run(t, func(w *rig.World) {
		ctx := w.T.Context()
		s := newStage(w, concurrency(t), 10*time.Second)
		a, b := s.enter("a"), s.enter("b")
		a.begin(ctx)
		s.until("a leads", func() bool { return a.leads() })
		b.begin(ctx)
		s.until("b waits", func() bool { return len(s.queue()) == 2 })
		key := s.queue()[1]
		s.log.Add(oracle.Event{Kind: oracle.Removed, Who: "admin", Token: key.Create, Key: key.Key, Lease: key.Lease, Clear: true})
		require.NoError(w.T, remove(ctx, s.admin.Client, key.Key, key.Lease))
		time.Sleep(while) // time for b to say so
		a.leave()
		s.until("b leads", func() bool { return b.leads() })
		got := s.finish()
		for _, invariant := range broken {
			requireViolation(w.T, got, invariant)
		}
	})
}

// Of 40 cuts of the leader, each ends with the old leader still sure of itself
// while the new one leads: the loss signal comes after the key's deletion.
func TestFindsTwoLeadersAfterEachCut(t *testing.T) {
	const cuts = 40
	found := 0
	for i := range cuts {
		rig.Run(t, func(w *rig.World) {
			ctx := w.T.Context()
			s := newStage(w, concurrency(t), 2*time.Second)
			a, b := s.enter("a"), s.enter("b")
			a.begin(ctx)
			s.until("a leads", func() bool { return a.leads() })
			b.begin(ctx)
			s.until("b waits", func() bool { return len(s.queue()) == 2 })
			// Anywhere between two renewals of the leader.
			time.Sleep(time.Duration(i) * 50 * time.Millisecond)
			a.host.Cut(rig.Both)
			s.until("b leads", func() bool { return b.leads() })
			s.until("a knows", func() bool { return !a.leads() })
			a.host.Heal()
			got := s.finish()
			one, six := has(got, "I1"), has(got, "I6")
			if one && six {
				found++
			} else {
				t.Logf("cut %d: I1 %v, I6 %v", i, one, six)
			}
		})
	}
	require.Equal(t, cuts, found, "cuts in which the fault was found")
}

func has(all []oracle.Violation, invariant string) bool {
	for _, v := range all {
		if v.Invariant == invariant {
			return true
		}
	}
	return false
}

func requireViolation(t testing.TB, all []oracle.Violation, invariant string) {
	t.Helper()
	require.True(t, has(all, invariant), "the checkers found %v", all)
}
