package transfer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/transfer"
)

// A panic of Accept that the caller of Serve recovers leaves nothing of Serve running, and no request
// key.
//
// Fails if Serve ends its watch only when it returns.
func TestAcceptThatPanics(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	leader := s.stand(deaf)
	l := leader.leads()
	target := s.stand()
	ctx, stop := context.WithCancel(s.Ctx)
	defer stop()
	watcher := &counted{Watcher: s.Client}
	over := make(chan any)
	go func() {
		defer func() { over <- recover() }()
		_ = transfer.Serve(ctx, transfer.Config{
			Candidate: leader.candidate, Session: leader.session, KV: s.Client, Watcher: watcher,
			ServeOptions: transfer.ServeOptions{Accept: func(transfer.Request) bool { panic("no") }},
		})
	}()
	s.Until("the request key", func() bool { return s.member(leader.Key()).TakesPart })
	var refusal *transfer.Refusal
	_, err := transfer.To(s.Ctx, transfer.Clients{KV: s.Client, Watcher: s.Client}, s.Election, target.Key(), transfer.Options{Timeout: time.Second, Drain: 5 * time.Second})
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "no", get(s, over))
	require.NoError(t, l.Err())
	s.Until("the end of the watch", func() bool { return watcher.open.Load() == 0 })
	require.False(t, s.member(leader.Key()).TakesPart)
}

// counted counts its open watches.
type counted struct {
	clientv3.Watcher
	open atomic.Int64
}

func (w *counted) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.open.Add(1)
	context.AfterFunc(ctx, func() { w.open.Add(-1) })
	return w.Watcher.Watch(ctx, key, opts...)
}
