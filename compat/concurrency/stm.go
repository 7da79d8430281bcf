package concurrency

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Software transactional memory is neither an election nor a mutex: it uses one transaction of
// etcd, and has none of the faults that this package avoids. It is etcd's own, under the same
// names, so that one import serves a whole program. This is the only file that imports etcd's
// package.

// STM is etcd's transactional memory.
type STM = concurrency.STM

// Isolation is a level of isolation.
type Isolation = concurrency.Isolation

// The levels of isolation, the strictest first.
const (
	SerializableSnapshot = concurrency.SerializableSnapshot
	Serializable         = concurrency.Serializable
	RepeatableReads      = concurrency.RepeatableReads
	ReadCommitted        = concurrency.ReadCommitted
)

// STMOption configures NewSTM. It is not etcd's type, which has no public name before client 3.7.
type STMOption func(*stmOptions)

type stmOptions struct {
	isolation Isolation
	ctx       context.Context
	prefetch  []string
}

// WithIsolation sets the level of isolation.
func WithIsolation(lvl Isolation) STMOption { return func(o *stmOptions) { o.isolation = lvl } }

// WithAbortContext ends the transaction with ctx.
func WithAbortContext(ctx context.Context) STMOption { return func(o *stmOptions) { o.ctx = ctx } }

// WithPrefetch reads keys before apply is called.
func WithPrefetch(keys ...string) STMOption {
	return func(o *stmOptions) { o.prefetch = append(o.prefetch, keys...) }
}

// NewSTM runs apply until its reads and writes have committed as one transaction.
func NewSTM(c *clientv3.Client, apply func(STM) error, so ...STMOption) (*clientv3.TxnResponse, error) {
	o := stmOptions{ctx: c.Ctx()} // etcd's defaults
	for _, set := range so {
		set(&o)
	}
	return concurrency.NewSTM(c, apply, concurrency.WithIsolation(o.isolation),
		concurrency.WithAbortContext(o.ctx), concurrency.WithPrefetch(o.prefetch...))
}

// NewSTMRepeatable is NewSTM with RepeatableReads and ctx.
func NewSTMRepeatable(ctx context.Context, c *clientv3.Client, apply func(STM) error) (*clientv3.TxnResponse, error) {
	return concurrency.NewSTMRepeatable(ctx, c, apply)
}

// NewSTMSerializable is NewSTM with Serializable and ctx.
func NewSTMSerializable(ctx context.Context, c *clientv3.Client, apply func(STM) error) (*clientv3.TxnResponse, error) {
	return concurrency.NewSTMSerializable(ctx, c, apply)
}

// NewSTMReadCommitted is NewSTM with ReadCommitted and ctx.
func NewSTMReadCommitted(ctx context.Context, c *clientv3.Client, apply func(STM) error) (*clientv3.TxnResponse, error) {
	return concurrency.NewSTMReadCommitted(ctx, c, apply)
}
