package transfer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/transfer"
)

// ahead is an etcd whose revisions are higher than they will be once it is restored from a
// backup: by as much as is set.
type ahead struct {
	clientv3.KV
	by    atomic.Int64
	reads atomic.Int64 // that were answered
}

func newAhead(kv clientv3.KV) *ahead {
	a := &ahead{}
	a.KV = etcdtest.WithTxns(kv, a.commit)
	return a
}

func (a *ahead) shift(kvs []*mvccpb.KeyValue) {
	for _, kv := range kvs {
		kv.ModRevision += a.by.Load()
	}
}

func (a *ahead) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, err := a.KV.Do(ctx, op)
	if get := resp.Get(); err == nil && get != nil {
		get.Header.Revision += a.by.Load()
		a.shift(get.Kvs)
		a.reads.Add(1)
	}
	return resp, err
}

func (a *ahead) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	resp, err := t.Commit(t.Context)
	if err == nil {
		resp.Header.Revision += a.by.Load()
		for _, r := range resp.Responses {
			if get := r.GetResponseRange(); get != nil {
				a.shift(get.Kvs)
			}
		}
	}
	return resp, err
}

// After a backup was restored that has the leader's lease, key and mailbox, revisions begin
// below those that it knows. Its mailbox is written anew, and it can be asked, at once and
// not when revisions have caught up.
//
// Broken by watch.recheck not looking at the answer's revision, and by serving.received
// dropping whatever is older than its own letter.
func TestMailboxAfterARestore(t *testing.T) {
	s := newStage(t)
	etcd := newAhead(s.Client)
	etcd.by.Store(1 << 40)
	opened := make(chan struct{}, 10)
	leader := s.stand(func(_ *election.Config, cfg *transfer.Config) {
		cfg.KV, cfg.WatchCheck = etcd, 20*time.Millisecond
		cfg.Hooks.Opened = func(transfer.OpenedEvent) { opened <- struct{}{} }
	})
	l := leader.leads()
	go func() { // until the candidate's Close, at the latest
		<-l.Done()
		_ = l.Resign(s.Ctx)
	}()
	get(s, opened)
	target := s.stand()

	// The second read comes after what was made of the first: now it knows the higher ones.
	s.Until("it has read its mailbox", func() bool { return etcd.reads.Load() >= 2 })
	etcd.by.Store(0)
	get(s, opened)
	require.NoError(t, etcdtest.Err(transfer.To(s.Ctx, transfer.Clients{KV: s.Client, Watcher: s.Client}, s.Election, target.Key(), patient)))
	target.leads()
	require.Empty(t, opened, "once is enough")
}
