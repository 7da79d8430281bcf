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

// revocations counts those that a client sends.
type revocations struct {
	clientv3.Lease
	sent atomic.Int32
}

func (r *revocations) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	r.sent.Add(1)
	return r.Lease.Revoke(ctx, id)
}

// A session that has lost its lease leaves it to those who took it over, also where what it
// sends arrives.
//
// Broken by revoking a lease that was lost.
func TestLeaseIsLeftToOthers(t *testing.T) {
	const ttl = 10
	rig.Run(t, func(w *rig.World) {
		host, others := w.Host("deaf"), w.Host("others").Client
		sent := &revocations{Lease: host.Client.Lease}
		host.Client.Lease = sent
		var lost, heirs []*concurrency.Session
		for range 200 { // what is sent at the end of one would be a matter of luck
			time.Sleep(7 * time.Millisecond) // so that each has a deadline of its own
			s := session(w, host.Client, ttl)
			lost, heirs = append(lost, s), append(heirs, session(w, others, ttl, concurrency.WithLease(s.Lease())))
		}
		host.Cut(rig.In)
		for _, s := range lost {
			take(w, s.Done(), "the deadline")
		}
		time.Sleep(2 * ttl * time.Second)
		require.Zero(w.T, sent.sent.Load(), "what is lost here is revoked")
		host.Heal()
		for i, s := range heirs {
			require.NoError(w.T, s.Ctx().Err(), "an heir has lost it")
			require.NoError(w.T, concurrency.NewElection(s, fmt.Sprint(i)).Campaign(w.T.Context(), "v"))
		}
	})
}

// What is asked of a session that was lost is refused here, whatever etcd still knows of
// its lease.
//
// Broken by a session that outlives its deadline, or that asks etcd after it.
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
		host.Heal() // the lease lives still: nobody is told so
		left, err := others.TimeToLive(ctx, s.Lease())
		require.NoError(w.T, err)
		require.Positive(w.T, left.TTL, "INVALID: etcd knows nothing of the lease any more")
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

// A lease that nobody confirms is given up after five seconds, as in etcd's package.
//
// Broken by a session that waits until its lease is known.
func TestTakeUpIsBounded(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		host := w.Host("a")
		host.Cut(rig.Both)
		begin := w.Now()
		s := session(w, host.Client, 1, concurrency.WithLease(1234))
		require.Equal(w.T, 5*time.Second, w.Now()-begin)
		take(w, s.Done(), "the end")
		s.Orphan()
		require.Error(w.T, s.Close())
		host.Heal()
	})
}
