package election_test

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
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
	// held is that of hold.
	held chan<- func()
}

func newGate(kv clientv3.KV) *gate {
	g := &gate{}
	g.KV = etcdtest.WithTxns(kv, g.commit)
	return g
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

// hold has the next transaction stay on its way until what held delivers is called. Its
// sender waits for an answer until its context ends, and what it sends after that is not
// held.
func (g *gate) hold(held chan<- func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = held
}

func (g *gate) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	g.mu.Lock()
	before, after := g.before, g.after
	g.before, g.after = nil, nil
	if send := g.delayed; send != nil {
		g.delayed = nil
		before = func(context.Context) error {
			// The request outlives the context of its sender.
			*send = func() { _, _ = t.Commit(context.WithoutCancel(t.Context)) }
			close(g.done)
			return context.DeadlineExceeded
		}
	}
	held := g.held
	g.held = nil
	g.mu.Unlock()
	if held != nil {
		held <- func() { _, _ = t.Commit(context.WithoutCancel(t.Context)) }
		<-t.Context.Done()
		return nil, t.Context.Err()
	}
	if before != nil {
		if err := before(t.Context); err != nil {
			return nil, err
		}
	}
	resp, err := t.Commit(t.Context)
	if after != nil {
		if err := after(t.Context, err); err != nil {
			return nil, err
		}
	}
	return resp, err
}
