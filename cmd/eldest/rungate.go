//go:build unix

package main

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// gate holds back, while a program may run, what would let another candidate lead.
//
// A session that is lost gives its lease back at once, and a candidate that is deposed
// removes what is left of its key: right for a leader that has stopped by then. A program
// is another process, and its end takes a moment. Until then the lease runs on, as if
// nobody had said anything.
type gate struct {
	mu sync.Mutex
	// open is closed while nothing is held back.
	open chan struct{}
	shut bool
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && !g.shut:
		g.open = make(chan struct{})
	case !shut && g.shut:
		close(g.open)
	}
	g.shut = shut
}

// errHeld is of a request that was not sent, because a program may run.
var errHeld = errors.New("held back: the program may still run")

// pass blocks while the gate is shut; ctx ends when the request is given up.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return errors.Join(errHeld, ctx.Err())
	}
}

// guardClient puts the gate into a client, which keeps its type: the library does more for
// one that it knows.
func (g *gate) guardClient(client *clientv3.Client, wait *waitNotice) {
	client.Lease = gatedLease{grantWatch{client.Lease, wait}, g}
	client.KV = gatedKV{client.KV, g}
}

type gatedLease struct {
	clientv3.Lease
	gate *gate
}

func (l gatedLease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if err := l.gate.pass(ctx); err != nil {
		return nil, err
	}
	return l.Lease.Revoke(ctx, id)
}

// gatedKV holds back every transaction: all that a candidate sends during its tenure is
// the removal of its key.
type gatedKV struct {
	clientv3.KV
	gate *gate
}

func (kv gatedKV) Txn(ctx context.Context) clientv3.Txn {
	return gatedTxn{kv.KV.Txn(ctx), ctx, kv.gate}
}

type gatedTxn struct {
	clientv3.Txn
	ctx  context.Context
	gate *gate
}

func (t gatedTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t gatedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t gatedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t gatedTxn) Commit() (*clientv3.TxnResponse, error) {
	if err := t.gate.pass(t.ctx); err != nil {
		return nil, err
	}
	return t.Txn.Commit()
}
