package election_test

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// gate is a KV on which a test decides what happens just before a request is sent
// and just after its answer came, so that a race can be played move by move.
type gate struct {
	clientv3.KV
	mu sync.Mutex
	// before may refuse: a request refused is not sent. after may replace the
	// error of one that was. Both run on the goroutine of the caller.
	before func(ctx context.Context) error
	after  func(ctx context.Context, err error) error
	// delayed and done are those of delay.
	delayed *func()
	done    chan struct{}
}

// on sets what happens around the next request that is a transaction, and around
// no other.
func (g *gate) on(before func(context.Context) error, after func(context.Context, error) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

// delay has the next transaction time out before it is sent; send sends it then,
// and done is closed once it is there.
func (g *gate) delay(send *func(), done chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delayed, g.done = send, done
}

func (g *gate) Txn(ctx context.Context) clientv3.Txn {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &gatedTxn{Txn: g.KV.Txn(ctx), ctx: ctx, before: g.before, after: g.after}
	g.before, g.after = nil, nil
	if send := g.delayed; send != nil {
		g.delayed = nil
		// The request outlives the context of its sender.
		t.Txn = g.KV.Txn(context.WithoutCancel(ctx))
		t.before = func(context.Context) error {
			*send = func() { _, _ = t.Txn.Commit() }
			close(g.done)
			return context.DeadlineExceeded
		}
	}
	return t
}

type gatedTxn struct {
	clientv3.Txn
	ctx    context.Context
	before func(context.Context) error
	after  func(context.Context, error) error
}

func (t *gatedTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *gatedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *gatedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *gatedTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.before != nil {
		if err := t.before(t.ctx); err != nil {
			return nil, err
		}
	}
	resp, err := t.Txn.Commit()
	if t.after != nil {
		if err := t.after(t.ctx, err); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// deafWatcher opens watches that are confirmed and then tell nothing.
type deafWatcher struct{ clientv3.Watcher }

func (w *deafWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	events := w.Watcher.Watch(ctx, key, opts...)
	deaf := make(chan clientv3.WatchResponse, 1)
	go func() {
		defer close(deaf)
		if first, ok := <-events; ok {
			deaf <- first
		}
		for range events { // until ctx ends
		}
	}()
	return deaf
}
