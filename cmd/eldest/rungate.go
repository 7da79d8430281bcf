//go:build unix

package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
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
func (g *gate) guardClient(client *clientv3.Client, name string) {
	client.Lease = gatedLease{client.Lease, g}
	mailboxes, _ := keys.MailboxRange(name)
	client.KV = gatedKV{client.KV, g, mailboxes}
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

// gatedKV holds back every transaction but those that write mailboxes alone: all that a
// candidate sends during its tenure is the removal of its key, and no mailbox lets anybody
// lead.
type gatedKV struct {
	clientv3.KV
	gate      *gate
	mailboxes string // the prefix of the election's
}

func (kv gatedKV) Txn(ctx context.Context) clientv3.Txn {
	return gatedTxn{Txn: kv.KV.Txn(ctx), ctx: ctx, kv: kv}
}

type gatedTxn struct {
	clientv3.Txn
	ctx context.Context
	kv  gatedKV
	// writes says that there is a write to a mailbox, others that there is one to
	// anything else.
	writes, others bool
}

func (t gatedTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t gatedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	t.look(ops)
	return t
}

func (t gatedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	t.look(ops)
	return t
}

func (t *gatedTxn) look(ops []clientv3.Op) {
	for _, op := range ops {
		switch {
		case op.IsGet():
		case (op.IsPut() || op.IsDelete()) && len(op.RangeBytes()) == 0 && strings.HasPrefix(string(op.KeyBytes()), t.kv.mailboxes):
			t.writes = true
		default:
			t.others = true
		}
	}
}

func (t gatedTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.writes || t.others {
		if err := t.kv.gate.pass(t.ctx); err != nil {
			return nil, err
		}
	}
	return t.Txn.Commit()
}
