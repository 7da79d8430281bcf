package txn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

func TestProclaimKeepsPlaceAndLease(t *testing.T) {
	s := newStage(t)
	e, p := s.enter("old")
	s.Methods()
	e.Value = []byte("new\x00\xff")
	mod, err := txn.Proclaim(s.Ctx, s.Client, e, p.Token)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods())
	resp, err := s.Admin.Get(s.Ctx, e.Key())
	require.NoError(t, err)
	own := resp.Kvs[0]
	require.Equal(t, "new\x00\xff", string(own.Value))
	require.Equal(t, int64(p.Token), own.CreateRevision)
	require.Equal(t, mod, own.ModRevision)
	require.Equal(t, e.Lease, own.Lease, "a put without the lease would unbind the key")
}

func TestProclaimInAnotherLifeChangesNothing(t *testing.T) {
	s := newStage(t)
	e, p := s.enter("old")
	s.Remove(e.Key())
	e.Value = []byte("stale")
	for range 2 {
		_, err := txn.Proclaim(s.Ctx, s.Client, e, p.Token)
		require.ErrorIs(t, err, eldest.ErrDeposed)
		require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	}
	_, absent := s.Value(e.Key())
	require.True(t, absent, "a proclaim is no registration")

	e.Value = []byte("second life")
	again, err := queue.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	require.Greater(t, again.Token, p.Token)
	e.Value = []byte("stale")
	require.ErrorIs(t, etcdtest.Err(txn.Proclaim(s.Ctx, s.Client, e, p.Token)), eldest.ErrDeposed)
	value, _ := s.Value(e.Key())
	require.Equal(t, "second life", value)
}

func TestLeaveEndsOneLifeOnly(t *testing.T) {
	s := newStage(t)
	e, p := s.enter("v")
	s.Methods()
	require.NoError(t, txn.Leave(s.Ctx, s.Client, e.Key(), p.Token))
	require.Equal(t, []string{"Txn"}, s.Methods())
	_, absent := s.Value(e.Key())
	require.True(t, absent)
	require.NoError(t, txn.Leave(s.Ctx, s.Client, e.Key(), p.Token), "who sends it again has left")

	again, err := queue.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	require.NoError(t, txn.Leave(s.Ctx, s.Client, e.Key(), p.Token))
	_, absent = s.Value(e.Key())
	require.False(t, absent, "the later life is not touched")
	require.NotEqual(t, p.Token, again.Token)
}

func (s *stage) count(key string) int64 {
	s.T.Helper()
	resp, err := s.Admin.Get(s.Ctx, key, clientv3.WithCountOnly())
	require.NoError(s.T, err)
	return resp.Count
}
