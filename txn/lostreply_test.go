package txn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// lossy returns a client whose replies can be lost.
func (s *stage) lossy() (clientv3.KV, *etcdtest.Host) {
	s.T.Helper()
	host := etcdtest.Shared(s.T).Host(s.T)
	return host.Client(s.T), host
}

// A lost reply is an unknown outcome for every request: the request was carried out, and sending it
// again is harmless.
func TestLostReplyIsAnUnknownOutcomeAndCanBeRepeated(t *testing.T) {
	s := newStage(t)
	kv, host := s.lossy()
	lost := func(key string, send func() error) {
		t.Helper()
		swallow := host.SwallowNextReply(etcdtest.Containing(key))
		err := send()
		require.NoError(t, swallow.Wait(s.Ctx))
		require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, eldest.ErrDeposed)
	}

	e := s.entry("v")
	lost(e.Key(), func() error { _, err := queue.Enter(s.Ctx, kv, e); return err })
	require.Equal(t, int64(1), s.count(e.Key()), "it was carried out")
	p, err := queue.Enter(s.Ctx, kv, e)
	require.NoError(t, err)
	require.True(t, p.Adopted)

	e.Value = []byte("w")
	lost(e.Key(), func() error { _, err := txn.Proclaim(s.Ctx, kv, e, p.Token); return err })
	require.NoError(t, etcdtest.Err(txn.Proclaim(s.Ctx, kv, e, p.Token)))

	lost(e.Key(), func() error { return txn.Leave(s.Ctx, kv, e.Key(), p.Token) })
	require.Zero(t, s.count(e.Key()))
	require.NoError(t, txn.Leave(s.Ctx, kv, e.Key(), p.Token))

	lost(e.Key(), func() error { _, err := queue.EnterAlone(s.Ctx, kv, e); return err })
	p, err = queue.EnterAlone(s.Ctx, kv, e)
	require.NoError(t, err)
	require.True(t, p.Adopted)
}

// Row 18: the third of the three outcomes of a guarded operation.
func TestGuardedOperationWithALostReply(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	kv, host := s.lossy()
	_, g := s.leader()
	x := s.data("x")

	swallow := host.SwallowNextReply(etcdtest.Containing(x))
	_, err := g.KV(kv).Put(s.Ctx, x, "1")
	require.NoError(t, swallow.Wait(s.Ctx))
	require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
	var refused *txn.GuardError
	require.NotErrorAs(t, err, &refused)
	value, _ := s.Value(x)
	require.Equal(t, "1", value, "it was applied")

	// A read has no unknown outcome.
	read, cancel := context.WithTimeout(s.Ctx, 200*time.Millisecond)
	defer cancel()
	host.Cut()
	_, err = g.KV(kv).Get(read, x)
	require.Error(t, err)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	write, cancel := context.WithTimeout(s.Ctx, 2*time.Second)
	defer cancel()
	require.ErrorIs(t, etcdtest.Err(g.Txn(write, kv).If(clientv3.Compare(clientv3.Version(x), "=", 1)).Else(clientv3.OpDelete(x)).Commit()), eldest.ErrOutcomeUnknown, "whether or not it arrived: it cannot be told")
}
