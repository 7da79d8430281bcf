package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/lease"
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
	// Clock is the process's, for those who read one.
	Clock lease.Clock
	// Recheck is how often a watch is checked, of those who do; 0: the default.
	Recheck time.Duration
	// Temper is how the session keeps its lease, of those who can be told.
	Temper Temper
	// TwoSteps asks for registering first and waiting in a second call, of those
	// who can.
	TwoSteps bool
	// Asked has it take part in transfers of leadership, of those who can.
	Asked bool
	// Rank says, of those who give way, how much the candidate with a value is wanted as
	// the leader; nil: they do not. Yields is to be called whenever they are to.
	Rank   func(value []byte) int
	Yields func()
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
	// Write puts value at key, guarded by the token, and returns the revision of its
	// commit.
	Write(ctx context.Context, key, value string) (int64, error)
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

// Temper is what a participant's session and clock are like. The zero value
// leaves everything at its default.
type Temper struct {
	// Rate is how fast the participant's clock runs; 0 means 1.
	Rate float64
	// Margin is subtracted from the TTL; it must cover Rate. 0: the default.
	Margin time.Duration
	// Patience is the time-out of a renewal as a share of the TTL; 0: the
	// default.
	Patience float64
}

// drawTemper draws one. The default margin hides two faults: an error of up to
// a tenth of the TTL, and, with its short time-out, all of a slow reply. So half
// of the participants have next to none, with a perfect clock; the others have a
// clock as bad as the default margin still covers.
func drawTemper(rng *rand.Rand) Temper {
	if rng.IntN(2) == 0 {
		return Temper{Margin: time.Millisecond, Patience: 0.1 + 0.6*rng.Float64()}
	}
	return Temper{Rate: 0.92 + 0.16*rng.Float64()}
}
