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

// STMOption configures NewSTM.
type STMOption = concurrency.STMOption

// WithIsolation sets the level of isolation.
func WithIsolation(lvl Isolation) STMOption { return concurrency.WithIsolation(lvl) }

// WithAbortContext ends the transaction with ctx.
func WithAbortContext(ctx context.Context) STMOption { return concurrency.WithAbortContext(ctx) }

// WithPrefetch reads keys before apply is called.
func WithPrefetch(keys ...string) STMOption { return concurrency.WithPrefetch(keys...) }

// NewSTM runs apply until its reads and writes have committed as one transaction.
func NewSTM(c *clientv3.Client, apply func(STM) error, so ...STMOption) (*clientv3.TxnResponse, error) {
	return concurrency.NewSTM(c, apply, so...)
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
