package election_test

import (
	"context"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// gate is a KV for which a test decides what happens just before a request is sent and just after
// its reply is received, so that a race can be repeated step by step.
type gate struct {
	clientv3.KV
	mu sync.Mutex
	// before may return an error: then the request is not sent. after may replace the error of a
	// request that was sent. Both run on the goroutine of the caller.
	before func(ctx context.Context) error
	after  func(ctx context.Context, err error) error
	// held is the channel that hold returned.
	held chan<- func()
}

func newGate(kv clientv3.KV) *gate {
	g := &gate{}
	g.KV = etcdtest.WithTxns(kv, g.commit)
	return g
}

// on sets the functions around the next transaction only.
func (g *gate) on(before func(context.Context) error, after func(context.Context, error) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

// stop has the next transaction wait before it is sent: sending is closed then, and closing release
// sends it.
func (g *gate) stop() (sending, release chan struct{}) {
	sending, release = make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return nil }, nil)
	return sending, release
}

// lose has the next transaction lost on its way; give is called before its sender gives up.
func (g *gate) lose(give func()) {
	g.on(func(context.Context) error { give(); return context.DeadlineExceeded }, nil)
}

// hold has the next transaction stay on its way until the function that held delivers is called.
// Its sender waits for a reply until its context ends; later transactions are not held.
func (g *gate) hold() (held <-chan func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sends := make(chan func(), 1)
	g.held = sends
	return sends
}

func (g *gate) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	g.mu.Lock()
	before, after := g.before, g.after
	g.before, g.after = nil, nil
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

// denying is a KV that refuses transactions while now is set, as if permissions were being changed.
type denying struct {
	clientv3.KV
	now atomic.Bool
	n   atomic.Int64 // refused so far
}

func newDenying(kv clientv3.KV) *denying {
	r := &denying{}
	r.KV = etcdtest.WithTxns(kv, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if r.now.Load() {
			r.n.Add(1)
			return nil, rpctypes.ErrPermissionDenied
		}
		return t.Commit(t.Context)
	})
	return r
}

// reading is a call of Ahead.
type reading = func() (txn.Position, error)

// ordering is an Ordering with functions of a test beside its requests; a nil one is not called.
type ordering struct {
	txn.Ordering
	// enter is called before Enter, and may refuse the request.
	enter func() error
	// ahead is called in place of Ahead, which read calls.
	ahead func(ctx context.Context, at int64, read reading) (txn.Position, error)
}

func (q ordering) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Position, error) {
	if q.enter != nil {
		if err := q.enter(); err != nil {
			return txn.Position{}, err
		}
	}
	return q.Ordering.Enter(ctx, kv, e)
}

func (q ordering) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Position, at int64) (txn.Position, error) {
	read := func() (txn.Position, error) { return q.Ordering.Ahead(ctx, kv, e, p, at) }
	if q.ahead == nil {
		return read()
	}
	return q.ahead(ctx, at, read)
}
