package sim

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Implementation is an election to be tried: anything that can be put behind a
// [Contender].
type Implementation struct {
	Name string
	// Open makes a contender with a session of its own. ctx bounds the opening.
	Open func(ctx context.Context, client *clientv3.Client, as Seat) (Contender, error)
}

// Seat says who stands where.
type Seat struct {
	Election string
	TTL      time.Duration
	Value    string
	// TwoSteps asks for registering first and waiting in a second call, of those
	// who can.
	TwoSteps bool
	// Proven is to be called with the revision of each winning proof by those
	// who tell it.
	Proven func(token, revision int64)
}

// Contender is one candidate with its session.
type Contender interface {
	// Lease of the session, by which the log knows whose key is whose.
	Lease() int64
	// Campaign blocks until it wins, fails, or ctx ends.
	Campaign(ctx context.Context) (Tenure, error)
	// Withdraw ends a campaign from outside. errors.ErrUnsupported: only the
	// campaign's own context can.
	Withdraw(ctx context.Context) error
	// Usable reports whether another campaign on the same session makes sense.
	Usable() bool
	// Close leaves politely: nothing of the contender remains in etcd. ctx
	// bounds it.
	Close(ctx context.Context)
	// Abandon stops everything and sends nothing. Whatever is blocked returns.
	Abandon()
}

// Tenure is what a winner holds.
type Tenure interface {
	Token() int64
	Key() string
	// Holds reports whether the holder may act as leader at this instant.
	Holds() bool
	// Done is closed when the tenure ended, for whatever reason, and Cause then
	// says why.
	Done() <-chan struct{}
	Cause() error
	// Write puts value at key, guarded by the token.
	Write(ctx context.Context, key, value string) error
	Resign(ctx context.Context) error
}

// Outcomes of a guarded write that did not succeed. An error of neither kind
// counts as unclear.
var (
	// ErrRefused: the write did not happen and never will.
	ErrRefused = errors.New("refused")
	// ErrUnclear: the write may have happened.
	ErrUnclear = errors.New("unclear")
)
