package actor

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/lease"
)

// seat says who stands where.
type seat struct {
	Client   *clientv3.Client
	Election string
	TTL      time.Duration
	Value    string
	// Clock is for the contenders that can be told which clock to read.
	Clock lease.Clock
	// Tight asks for next to no margin, of those who have one.
	Tight bool
	// Proven is called with the revision of each winning proof by those who tell it.
	Proven func(token, revision int64)
}

// contender is one candidate with its session.
type contender interface {
	Lease() int64
	// Campaign blocks until it wins, fails, or ctx ends.
	Campaign(ctx context.Context) (tenure, error)
	// Usable reports whether another campaign on the same session makes sense.
	Usable() bool
	// Close leaves politely, for as long as ctx lasts. What is left after that goes
	// with the lease.
	Close(ctx context.Context)
}

// tenure is what a winner holds.
type tenure interface {
	Token() int64
	Key() string
	// Holds reports whether the holder may act as leader at this instant.
	Holds() bool
	// Done is closed when the tenure has ended, and Cause then says why.
	Done() <-chan struct{}
	Cause() error
	// Guarded commits an operation if the token is still that of the leader.
	Guarded(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error)
	// Late is Guarded without asking anything but etcd, as a request that was under
	// way when the tenure ended.
	Late(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error)
	Resign(ctx context.Context) error
}

// Outcomes of a guarded operation that did not succeed. An error of neither kind counts as
// unclear.
var (
	// errRefused: it did not happen and never will.
	errRefused = errors.New("refused")
	// errUnclear: it may have happened.
	errUnclear = errors.New("unclear")
)

// opener starts a session, within ctx.
type opener func(ctx context.Context, at seat) (contender, error)

// openers are the contenders, by name.
var openers = map[string]opener{Eldest: openEldest, Concurrency: openConcurrency}

// The names of the contenders.
const (
	Eldest      = "eldest"
	Concurrency = "concurrency"
)

// compareAndDo is a guarded operation made by hand.
func compareAndDo(ctx context.Context, kv clientv3.KV, guard clientv3.Cmp, op clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := kv.Txn(ctx).If(guard).Then(op).Commit()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnclear, err)
	case !resp.Succeeded:
		return nil, errRefused
	}
	return resp, nil
}
