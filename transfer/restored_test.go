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

// ahead is an etcd whose revisions are higher by by, as they were before etcd was restored from an
// older backup.
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

// After the restore of a backup that contains the leader's lease, key and request key, revisions
// begin below those that the leader has read. Its request key is written again, and it accepts
// requests at once, not only when revisions have caught up.
//
// Fails if watch.recheck ignores the revision of the reply, or if serving.received drops every
// message that is older than its own.
func TestRequestKeyAfterARestore(t *testing.T) {
	s := newStage(t)
	etcd := newAhead(s.Client)
	etcd.by.Store(1 << 40)
	opened := make(chan struct{}, 10)
	leader := s.stand(func(_ *election.Config, cfg *transfer.Config) {
		cfg.KV, cfg.WatchCheck = etcd, 20*time.Millisecond
		cfg.Hooks.Opened = func(transfer.OpenedEvent) { opened <- struct{}{} }
	})
	l := leader.leads()
	go func() { // at the latest at the candidate's Close
		<-l.Done()
		_ = l.Resign(s.Ctx)
	}()
	get(s, opened)
	target := s.stand()

	// The second read is sent after the first one was processed: now it knows the higher revisions.
	s.Until("it has read its request key", func() bool { return etcd.reads.Load() >= 2 })
	etcd.by.Store(0)
	get(s, opened)
	require.NoError(t, etcdtest.Err(transfer.To(s.Ctx, transfer.Clients{KV: s.Client, Watcher: s.Client}, s.Election, target.Key(), patient)))
	target.leads()
	require.Empty(t, opened, "once is enough")
}
