package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

// Leadership is the tenure that a lead function is given.
type Leadership = election.Leadership

// Clients is what a round asks etcd through. All must see the same etcd.
type Clients struct {
	KV      clientv3.KV
	Watcher clientv3.Watcher
	Lease   clientv3.Lease
	// Majority is lease.Config.Majority: nil means Lease, if it lists etcd's members. A
	// namespaced lease does not.
	Majority lease.Majority
}

// Client returns all of one client; none of nil.
func Client(c *clientv3.Client) Clients {
	if c == nil {
		return Clients{}
	}
	return Clients{KV: c, Watcher: c, Lease: c, Majority: c}
}

// Source hands out the clients of the next round. It is called when nothing of the
// round before is going on any more, so it may close the clients of that one. It may
// block until it has some, or ctx ends; an error is logged, and it is asked again
// after the back-off. All rounds must see the same etcd cluster: tokens of two clusters
// cannot be compared, and what an earlier life left in the second one is not looked for.
type Source func(ctx context.Context) (Clients, error)

// Always is the source that has the same clients for all rounds.
func Always(c Clients) Source {
	return func(context.Context) (Clients, error) { return c, nil }
}

// Defaults of Config.
const (
	// DefaultDrain is how long a lead function may take to return.
	DefaultDrain = 10 * time.Second
	// DefaultLeave bounds the farewell to etcd.
	DefaultLeave = 5 * time.Second
	// DefaultStarts is how many elections of a Group enter or leave their queues at a time.
	DefaultStarts = 64
	// opening bounds the opening of a session; after that the source is asked
	// whether it has better clients.
	opening = 10 * time.Second
)

// Config says who stands where. Election, NodeID and Source are required, but for the
// Election of a Group. It is copied by New and NewGroup.
type Config struct {
	// Election is the name: any bytes but '/', up to keys.MaxName of them.
	Election string
	// NodeID names this node: one living process for each ID. Where two have the same one
	// by mistake, each is a candidate of its own and neither removes the other's key, but
	// neither follows the other: while one leads, the other's status is Neither. Logger is
	// warned by the one that starts while the other's key is in the queue.
	NodeID string
	// Address is where others forward requests to; empty: nothing is forwarded here.
	Address string
	// Source hands out the clients.
	Source Source

	// Codec writes and reads the values of candidates. nil means identity.Protobuf.
	Codec identity.Codec
	// Session says how sessions are opened; Session.Lease and Session.Majority come from
	// Source and must be nil.
	Session lease.Config
	// Candidate says how the node stands. Election, Session, KV, Watcher, Value and
	// Mutex are filled in for each round and must be left out. Hooks that block cost
	// Leave at the end of each round.
	Candidate election.Config
	// Observer says how the leader is observed. Election, KV and Watcher are filled
	// in for each round and must be left out.
	Observer observe.Config

	// Priority is how much this node is wanted as the leader. If it is not 0 the node
	// tells it in its value and yields, when it is its turn to lead, to nodes in the
	// queue with a higher one; see election.ByPriority for what that promises, and what it
	// does to fairness. A node with 0 never yields and counts as 0 to the others: give
	// all nodes of a service one, or none. Candidate.ShouldYield must then be left out.
	Priority int32
	// Transfer has this node take part in transfers of leadership (package transfer), for
	// one more watch and two more requests in each round: asked to, it requeues in the
	// queue, or its tenure ends with eldest.ErrDraining and, in the usual order, the round.
	// Where etcd does not let it have a mailbox it stands all the same, and says so to
	// Logger.
	Transfer bool
	// Serve says how it takes part: what it accepts, and who is told. Candidate, Session,
	// KV and Watcher are filled in for each round and must be left out.
	Serve transfer.Config

	// TakeOver has the first round that reaches etcd remove the keys of other instances with
	// this NodeID, so that a node that crashed and starts again does not wait until the
	// lease of the instance that crashed expires, as it does without. The key of a leader is
	// removed at once, and the next candidate leads.
	//
	// It is safe where an instance is started only when the one before has ended: by a
	// supervisor on the same machine, or with an ID that the platform gives to one process
	// at a time. Where the other instance runs, its tenure ends with eldest.ErrDeposed in
	// milliseconds; while it is partitioned from etcd two lead, until its deadline (see
	// election.Evict). Of two processes that run with one ID each evicts the other once,
	// when it starts, and never in a later round.
	TakeOver bool

	// Drain is how long, after the end of its context, the lead function may take to
	// return while this node keeps its key. 0 means DefaultDrain.
	Drain time.Duration
	// Leave bounds the farewell to etcd at the end of a round; after that the lease
	// is left to expire. 0 means DefaultLeave.
	Leave time.Duration
	// Starts is how many elections of a Group enter or leave their queues at a time: each
	// has one request under way. 0 means DefaultStarts. An Elector has no use for it.
	Starts int
	// Backoff gives the pause after the n-th round in a row that was not stable, from
	// 0. nil means doubling from 100 ms to 5 s with jitter; a pause is 5 ms at least.
	Backoff func(attempt int) time.Duration
	// Stable is how long a round must have led, or, if it never led, stood, for the
	// back-off to start anew. 0 means twice the granted TTL.
	Stable time.Duration
	// Logger is told of each transition, and of requests to etcd that failed and are
	// repeated: the 1st, 2nd, 4th, 8th and so on of a row. Lines are written off the
	// elector's own goroutines. nil means nobody.
	Logger *slog.Logger
}

// withDefaults checks the config as one for an election, and fills it in.
func (c Config) withDefaults(name string) (Config, error) {
	if named := c.Candidate.Election; named != "" && named != name {
		return c, invalid("Config.Candidate is for another election, %q: it is filled in for each round", named)
	}
	c.Candidate.Election = name
	switch err := c.Candidate.Check(); {
	case err != nil:
		return c, err
	case c.NodeID == "":
		return c, invalid("Config.NodeID is empty")
	case c.Source == nil:
		return c, invalid("Config.Source is nil")
	case c.Session.Lease != nil:
		return c, invalid("Config.Session.Lease is not nil: it comes from Config.Source")
	case c.Session.Majority != nil:
		return c, invalid("Config.Session.Majority is not nil: it comes from Config.Source")
	case c.Candidate.Session != nil, c.Candidate.KV != nil, c.Candidate.Watcher != nil, c.Candidate.Value != nil, c.Candidate.Mutex != nil:
		return c, invalid("Config.Candidate has a Session, KV, Watcher, Value or Mutex: those are filled in for each round")
	case c.Observer.Election != "", c.Observer.KV != nil, c.Observer.Watcher != nil:
		return c, invalid("Config.Observer has an Election, KV or Watcher: those are filled in for each round")
	case c.Serve.Candidate != nil, c.Serve.Session != nil, c.Serve.KV != nil, c.Serve.Watcher != nil:
		return c, invalid("Config.Serve has a Candidate, Session, KV or Watcher: those are filled in for each round")
	case c.Priority != 0 && c.Candidate.ShouldYield != nil:
		return c, invalid("Config.Priority is %d and Config.Candidate.ShouldYield is not nil: either says when to yield", c.Priority)
	case c.Drain < 0, c.Leave < 0, c.Stable < 0:
		return c, invalid("Config.Drain %v, Leave %v or Stable %v is negative", c.Drain, c.Leave, c.Stable)
	case c.Starts < 0:
		return c, invalid("Config.Starts %d is negative", c.Starts)
	}
	observer := c.Observer
	observer.Election = name
	if err := errors.Join(c.Session.Check(), observer.Check(), c.Serve.Check()); err != nil {
		return c, err
	}
	if c.Codec == nil {
		c.Codec = identity.Protobuf{}
	}
	if c.Priority != 0 {
		c.Candidate.ShouldYield = election.ByPriority(func(value []byte) int {
			id, _ := c.Codec.Decode(value) // a foreign value says nothing: 0
			return int(id.Priority)
		})
	}
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.Leave == 0 {
		c.Leave = DefaultLeave
	}
	if c.Starts == 0 {
		c.Starts = DefaultStarts
	}
	c.Backoff = retry.Or(c.Backoff, retry.Jittered(100*time.Millisecond, 5*time.Second))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	} else {
		log := hooks.Log(c.Logger.With("node", c.NodeID), c.Election)
		c.Session.Hooks = hooks.Tee(lease.Hooks{Retrying: log.Session.Retrying}, c.Session.Hooks)
		c.Candidate.Hooks = hooks.Tee(election.Hooks{Retrying: log.Candidate.Retrying}, c.Candidate.Hooks)
		c.Observer.Hooks = hooks.Tee(observe.Hooks{Retrying: log.Observer.Retrying}, c.Observer.Hooks)
	}
	return c, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{eldest.ErrInvalid}, args...)...)
}
