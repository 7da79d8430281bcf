package etcdtest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Txn is a transaction that a caller wants to commit.
type Txn struct {
	Context    context.Context // the caller's
	If         []clientv3.Cmp
	Then, Else []clientv3.Op
	kv         clientv3.KV
}

// Commit sends the transaction to etcd under a context that need not be the caller's: what was sent
// arrives even if the caller has ended since. It can be committed more than once.
func (t *Txn) Commit(ctx context.Context) (*clientv3.TxnResponse, error) {
	return t.kv.Txn(ctx).If(t.If...).Then(t.Then...).Else(t.Else...).Commit()
}

// WithTxns returns kv with a function that decides about each transaction: commit is called in
// place of its Commit, on the caller's goroutine, and several calls may be in progress at a time.
func WithTxns(kv clientv3.KV, commit func(*Txn) (*clientv3.TxnResponse, error)) clientv3.KV {
	return txns{KV: kv, commit: commit}
}

type txns struct {
	clientv3.KV
	commit func(*Txn) (*clientv3.TxnResponse, error)
}

func (k txns) Txn(ctx context.Context) clientv3.Txn {
	return &pending{txn: Txn{Context: ctx, kv: k.KV}, commit: k.commit}
}

// pending collects a transaction.
type pending struct {
	txn    Txn
	commit func(*Txn) (*clientv3.TxnResponse, error)
}

func (p *pending) If(cs ...clientv3.Cmp) clientv3.Txn {
	p.txn.If = append(p.txn.If, cs...)
	return p
}

func (p *pending) Then(ops ...clientv3.Op) clientv3.Txn {
	p.txn.Then = append(p.txn.Then, ops...)
	return p
}

func (p *pending) Else(ops ...clientv3.Op) clientv3.Txn {
	p.txn.Else = append(p.txn.Else, ops...)
	return p
}

func (p *pending) Commit() (*clientv3.TxnResponse, error) { return p.commit(&p.txn) }
