package expiry

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/clockctx"
	"github.com/eldest-io/eldest/lease"
)

// session opens a session of the drop-in on the clock of the bubble.
func session(w *rig.World, cli *clientv3.Client, ttl int, opts ...concurrency.SessionOption) *concurrency.Session {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), patience)
	w.T.Cleanup(cancel)
	ctx = clockctx.With(ctx, lease.Monotonic())
	s, err := concurrency.NewSession(cli, append(opts, concurrency.WithTTL(ttl), concurrency.WithContext(ctx))...)
	require.NoError(w.T, err)
	w.T.Cleanup(s.Orphan)
	return s
}

// revocations counts the revocations that a client sends.
type revocations struct {
	clientv3.Lease
	sent atomic.Int32
}

func (r *revocations) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	r.sent.Add(1)
	return r.Lease.Revoke(ctx, id)
}

// A session that has lost its lease does not revoke it, because another session may have taken it
// over; not even if its requests still arrive.
//
// Broken by revoking a lease that was lost.
func TestLeaseIsLeftToOthers(t *testing.T) {
	const ttl = 10
	rig.Run(t, func(w *rig.World) {
		host, others := w.Host("deaf"), w.Host("others").Client
		sent := &revocations{Lease: host.Client.Lease}
		host.Client.Lease = sent
		var lost, heirs []*concurrency.Session
		for i := range 400 { // with only a few, it would be chance whether one sends a revocation
			time.Sleep(2 * time.Millisecond) // so that each has a deadline of its own
			lost = append(lost, session(w, host.Client, ttl))
			if i%40 == 0 {
				heirs = append(heirs, session(w, others, ttl, concurrency.WithLease(lost[i].Lease())))
			}
		}
		host.Cut(rig.In)
		for _, s := range lost {
			take(w, s.Done(), "the deadline")
		}
		time.Sleep((ttl + 2) * time.Second) // longer than the TTL
		require.Zero(w.T, sent.sent.Load(), "what is lost here is revoked")
		host.Heal()
		for i, s := range heirs {
			require.NoError(w.T, s.Ctx().Err(), "an heir has lost it")
			require.NoError(w.T, concurrency.NewElection(s, fmt.Sprint(i)).Campaign(w.T.Context(), "v"))
		}
	})
}

// Calls on a session that was lost are refused locally, whether or not etcd still has its lease.
//
// Broken by a session that outlives its deadline, or that sends requests to etcd after it.
func TestLostSession(t *testing.T) {
	const ttl = 8
	rig.Run(t, func(w *rig.World) {
		ctx, host, others := w.T.Context(), w.Host("a"), w.Host("others").Client
		s := session(w, host.Client, ttl)
		e, m := concurrency.NewElection(s, "e"), concurrency.NewMutex(s, "m")
		require.NoError(w.T, e.Campaign(ctx, "v"))
		require.NoError(w.T, m.Lock(ctx))
		first := concurrency.NewElection(session(w, others, 60), "w")
		require.NoError(w.T, first.Campaign(ctx, "first"))
		waiting := make(chan error, 1)
		go func() { waiting <- concurrency.NewElection(s, "w").Campaign(ctx, "waiter") }()
		time.Sleep(time.Second)
		queue, err := others.Get(ctx, "w/", clientv3.WithPrefix())
		require.NoError(w.T, err)
		require.Len(w.T, queue.Kvs, 2, "a waiter")

		cut := w.Now()
		host.Cut(rig.Both)
		take(w, s.Done(), "the deadline")
		require.Less(w.T, w.Now()-cut, ttl*time.Second)
		err = take(w, waiting, "the end of the waiter's campaign")
		require.ErrorIs(w.T, err, concurrency.ErrElectionNotLeader)
		require.ErrorIs(w.T, err, eldest.ErrSessionLost)
		host.Heal() // the lease still exists, which no call reports
		left, err := others.TimeToLive(ctx, s.Lease())
		require.NoError(w.T, err)
		require.GreaterOrEqual(w.T, left.TTL, int64(0), "INVALID: etcd knows nothing of the lease any more")
		require.Equal(w.T, concurrency.ErrElectionNotLeader, e.Proclaim(ctx, "w"))
		require.Equal(w.T, rpctypes.ErrLeaseNotFound, concurrency.NewElection(s, "e").Campaign(ctx, "again"))
		require.Equal(w.T, rpctypes.ErrLeaseNotFound, concurrency.NewMutex(s, "n").Lock(ctx))
		require.Equal(w.T, rpctypes.ErrLeaseNotFound, concurrency.NewMutex(s, "n").TryLock(ctx))
		require.NoError(w.T, m.Unlock(ctx), "what is gone is unlocked")
		if err = s.Close(); err != nil {
			require.Equal(w.T, rpctypes.ErrLeaseNotFound, err)
		}
	})
}

// unconfirmed counts the leases that are taken up and closed without an answer: a process keeps a
// record of what it has sent, also when tests run again.
var unconfirmed atomic.Int64

// A lease that etcd does not confirm is given up after five seconds, as in etcd's package.
//
// Broken by a session that waits until its lease is confirmed.
func TestTakeUpIsBounded(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		host := w.Host("a")
		host.Cut(rig.Both)
		begin := w.Now()
		s := session(w, host.Client, 1, concurrency.WithLease(clientv3.LeaseID(1234+unconfirmed.Add(1))))
		require.Equal(w.T, 5*time.Second, w.Now()-begin)
		take(w, s.Done(), "the end")
		s.Orphan()
		require.Error(w.T, s.Close())
		host.Heal()
	})
}
