package elector_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// late holds the answer of the first read of a key.
type late struct {
	clientv3.KV
	key        atomic.Pointer[string]
	read, goOn chan struct{}
}

func (l *late) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, err := l.KV.Do(ctx, op)
	if key := l.key.Load(); key != nil && string(op.KeyBytes()) == *key && l.key.CompareAndSwap(key, nil) {
		close(l.read)
		<-l.goOn
	}
	return resp, err
}

// A win that is proven before the candidate's key is deleted by hand, and known after the node has
// followed a later leader, is given up: the node would lead with the lower token.
//
// Fails when the tokens of the leaders that the node has followed do not matter.
func TestWinIsGivenUpAfterALaterLeader(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	_, first := orphan(t, cli, name, identity.Identity{NodeID: "first", Instance: "i"})
	kv := &late{KV: cli, read: make(chan struct{}), goOn: make(chan struct{})}
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Candidate.Timeout = etcdtest.Patience
		cfg.Candidate.WatchCheck, cfg.Observer.WatchCheck = -1, -1
		cfg.Source = elector.Always(elector.Clients{KV: kv, Watcher: etcdtest.Deaf(cli, first, name+"/"), Lease: cli, Majority: cli})
	}))
	n.follows(t, "first")
	own := queueOf(t, cli, name)[1].Key
	token, _ := orphan(t, cli, name, identity.Identity{NodeID: "later", Instance: "i"})
	kv.key.Store(&own)
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), first)))
	etcdtest.Take(t, kv.read, "the proof")
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), own)))
	require.Equal(t, token, n.follows(t, "later").Token)
	close(kv.goOn)
	etcdtest.Eventually(t, func() bool {
		queue := queueOf(t, cli, name)
		return len(n.won) > 0 || len(queue) == 2 && queue[1].Key != own
	}, "it registers again")
	require.Empty(t, n.won, "it led with a token lower than %d", token)
	n.follows(t, "later")
}
