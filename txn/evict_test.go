package txn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// An eviction is carried out only if the newest heartbeat has the expected revision and value, and
// both candidates exist with the expected create revisions.
func TestEvict(t *testing.T) {
	s := newStage(t)
	elder, pe := s.enter("elder")
	own, po := s.enter("own")
	beat := keys.Heartbeat(elder.Lease)
	s.Put(beat, "nonce 1 1s", clientv3.WithLease(clientv3.LeaseID(elder.Lease)))
	mod := s.Put(beat, "nonce 2 1s", clientv3.WithLease(clientv3.LeaseID(elder.Lease)))
	right := txn.Suspect{
		Own: own.Key(), OwnToken: po.Token, Key: elder.Key(), Token: pe.Token, Heartbeat: beat, Mod: mod, Value: "nonce 2 1s",
	}
	for what, change := range map[string]func(*txn.Suspect){
		"an older beat":            func(w *txn.Suspect) { w.Mod-- },
		"a newer beat":             func(w *txn.Suspect) { w.Mod++ },
		"no beat":                  func(w *txn.Suspect) { w.Heartbeat += "0" },
		"the same revision, again": func(w *txn.Suspect) { w.Value = "other 2 1s" },
		"an earlier life":          func(w *txn.Suspect) { w.Token-- },
		"an own key that is gone":  func(w *txn.Suspect) { w.OwnToken-- },
	} {
		wrong := right
		change(&wrong)
		evicted, err := txn.Evict(s.Ctx, s.Client, wrong)
		require.NoError(t, err, what)
		require.False(t, evicted, what)
		require.Equal(t, []string{elder.Key(), own.Key()}, s.Queue(), what)
	}
	evicted, err := txn.Evict(s.Ctx, s.Client, right)
	require.NoError(t, err)
	require.True(t, evicted)
	require.Equal(t, []string{own.Key()}, s.Queue())
	evicted, err = txn.Evict(s.Ctx, s.Client, right)
	require.NoError(t, err)
	require.False(t, evicted, "it was gone")

	cut := etcdtest.Shared(t).Host(t)
	lost := cut.Client(t)
	etcdtest.Reachable(t, lost)
	cut.Drop(etcdtest.BothWays)
	ctx, cancel := context.WithTimeout(s.Ctx, 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, etcdtest.Err(txn.Evict(ctx, lost, right)), eldest.ErrOutcomeUnknown)
}
