package election_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// G1, where keys were put by hand: an elder that came in one transaction with more
// foreign keys than an answer holds shares their create revision. Whoever searches
// on below that revision misses it, and leads beside it.
//
// Broken by Queue.Ahead paging by revision behind an answer of foreign keys only.
func TestElderAmongForeignKeysOfItsTransaction(t *testing.T) {
	s := newStage(t)
	elder := keys.Candidate(s.Election, 0x7fffffff)
	ops := []clientv3.Op{clientv3.OpPut(elder, "by hand")}
	for i := range 40 {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s!%02d", keys.Prefix(s.Election), i), "foreign"))
	}
	require.NoError(t, etcdtest.Err(s.Admin.Txn(s.Ctx).Then(ops...).Commit()))
	t.Cleanup(func() { // they have no lease
		require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, keys.Prefix(s.Election), clientv3.WithPrefix())))
	})

	waits := make(chan election.WaitingEvent, 10)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
	})
	campaign := s.campaigning(s.Ctx, c)
	select {
	case e := <-waits:
		require.Equal(t, elder, e.Predecessor.Key)
	case won := <-campaign:
		require.Fail(t, "it leads beside an elder", "%v", won.err)
	case <-s.Ctx.Done():
		require.Fail(t, "it waits for nobody")
	}
	s.Remove(elder)
	require.NoError(t, get(s, campaign).err)
}
