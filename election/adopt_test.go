package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// Adopting a key under another value takes a second request. A passing error of it
// must not cost the place, nor, after a Resume, the leadership.
//
// Broken by proclaiming once in adopt, without the policy's Until.
func TestAdoptingOutlastsAPassingError(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	before := s.lead(s.candidate("before", on(session)))
	session.Abandon()
	resumed, err := lease.Resume(s.Ctx, lease.Config{Lease: s.Admin}, session.ID())
	require.NoError(t, err)
	defer func() { require.NoError(t, resumed.Close(s.Ctx)) }()

	c, g := s.gated("after", on(resumed))
	met := make(chan struct{})
	g.on(nil, func(_ context.Context, err error) error { // the registration: it finds the key
		g.on(func(context.Context) error { close(met); return rpctypes.ErrLeaderChanged }, nil)
		return err
	})
	l := s.lead(c)
	get(s, met)
	require.Equal(t, before.Token(), l.Token(), "the same tenure")
	require.Equal(t, "after", s.value(c.Key()))
}

// denying is a KV whose transactions are refused while a role is being changed.
type denying struct {
	clientv3.KV
	now atomic.Bool
	n   atomic.Int64 // refused so far
}

func newDenying(kv clientv3.KV) *denying {
	r := &denying{}
	r.KV = etcdtest.WithTxns(kv, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if r.now.Load() {
			r.n.Add(1)
			return nil, rpctypes.ErrPermissionDenied
		}
		return t.Commit(t.Context)
	})
	return r
}

// resignedInVain is a candidate on kv whose tenure has ended while its key is still there,
// because etcd refused to remove it, and whose background waits before it asks again.
func (s *stage) resignedInVain(r *denying, kv clientv3.KV) (*election.Candidate, *election.Leadership) {
	s.T.Helper()
	c := s.candidate("v", on(s.session(s.Admin)), func(cfg *election.Config) {
		cfg.KV, cfg.Backoff = kv, func(int) time.Duration { return time.Hour }
	})
	l := s.lead(c)
	r.now.Store(true)
	require.ErrorIs(s.T, l.Resign(s.Ctx), rpctypes.ErrPermissionDenied)
	r.now.Store(false)
	require.Equal(s.T, []string{c.Key()}, s.Queue())
	return c, l
}

// G2 and G4: the key of an earlier tenure is there when the candidate campaigns
// again. Adopted, it would bring the old token back, and with it the guarded
// writes of the first tenure that are still on their way.
//
// It is held twice: nothing is registered before the old key is gone, and a key with a doomed
// token is not adopted.
func TestKeyOfAnEndedTenureIsNotAdopted(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.Client)
	c, first := s.resignedInVain(r, r)
	second := s.lead(c)
	require.Greater(t, second.Token(), first.Token(), "the token of an earlier life")
	require.Equal(t, []string{c.Key()}, s.Queue())

	late := txn.Guard{Election: s.Election, Key: first.Key(), Token: first.Token()}
	require.ErrorIs(t, etcdtest.Err(late.KV(s.Admin).Put(s.Ctx, t.Name(), "of the first tenure")), eldest.ErrDeposed)
	require.NoError(t, second.Err())
}

// G8: the caller gives up just when that old key is to be removed. Nobody stands
// then, so it goes in the background.
//
// Broken by tending only a registration whose outcome is unknown.
func TestKeyOfAnEndedTenureGoesThoughItsCandidateGivesUp(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.Client)
	g := newGate(r)
	c, _ := s.resignedInVain(r, g)
	ctx, cancel := context.WithCancel(s.Ctx)
	given := make(chan struct{})
	g.on(func(context.Context) error { cancel(); <-given; return nil }, nil) // the removal
	_, err := c.Campaign(ctx)
	close(given)
	require.ErrorIs(t, err, context.Canceled)
	s.queued(0)
}
