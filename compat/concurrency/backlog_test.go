package concurrency

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// For a reader that does not read, a thousand values are kept and no more. Such a reader misses the
// oldest values, and receives the newest ones in order, and then the end.
func TestSlowReader(t *testing.T) {
	f := &feed{more: make(chan struct{}, 1)}
	const last = 10_000
	for i := 1; i <= last; i++ {
		f.add(&clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{{ModRevision: int64(i)}}})
		require.LessOrEqual(t, len(f.waiting), backlog)
		require.LessOrEqual(t, cap(f.waiting), 4*backlog, "it grows")
	}
	f.end()
	ch := make(chan *clientv3.GetResponse)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ch)
		f.deliver(context.Background(), ch)
	})
	var seen []int64
	for resp := range ch {
		seen = append(seen, resp.Kvs[0].ModRevision)
	}
	all.Wait()
	require.Len(t, seen, backlog)
	for i, revision := range seen {
		require.EqualValues(t, last-backlog+1+i, revision)
	}
}

// A reader that keeps up misses nothing.
func TestQuickReader(t *testing.T) {
	f := &feed{more: make(chan struct{}, 1)}
	ch := make(chan *clientv3.GetResponse)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ch)
		f.deliver(ctx, ch)
	})
	for i := range int64(5000) {
		f.add(&clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{{ModRevision: i}}})
		require.Equal(t, i, (<-ch).Kvs[0].ModRevision)
	}
	cancel()
	all.Wait()
}
