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

// Leadership is the tenure that is passed to a lead function.
type Leadership = election.Leadership

// Clients holds the clients of a round. All must use the same etcd cluster.
type Clients struct {
	KV      clientv3.KV
	Watcher clientv3.Watcher
	Lease   clientv3.Lease
	// Majority is lease.Config.Majority. nil means Lease, if it can list etcd's members; a
	// namespaced lease cannot.
	Majority lease.Majority
}

// Client returns Clients that use c for everything; the zero Clients if c is nil.
func Client(c *clientv3.Client) Clients {
	if c == nil {
		return Clients{}
	}
	return Clients{KV: c, Watcher: c, Lease: c, Majority: c}
}

// Source returns the clients of the next round. It is called when the previous round has ended
// completely, so it may close the clients of that round. It may block until it has clients or ctx
// ends. If it fails, the error is logged and Source is called again after the back-off. A node that
// has withdrawn calls it again when its client is closed or etcd refuses for good. All rounds must use
// the same etcd cluster: tokens of two clusters cannot be compared, and keys that an earlier instance
// left in the second cluster are not searched for.
type Source func(ctx context.Context) (Clients, error)

// Always returns a source that returns the same clients for all rounds.
func Always(c Clients) Source {
	return func(context.Context) (Clients, error) { return c, nil }
}

// Defaults of Config.
const (
	// DefaultDrain is how long a lead function may take to return.
	DefaultDrain = 10 * time.Second
	// DefaultLeave bounds the closing of the session.
	DefaultLeave = 5 * time.Second
	// DefaultStarts is how many elections of a Group enter or leave their queues at a time.
	DefaultStarts = 64
	// opening bounds the opening of a session; after that the source is called again, because it
	// may return better clients.
	opening = 10 * time.Second
)

// Config configures an Elector or a Group. Election, NodeID and Source are required, except that a
// Group has no Election. It is copied by New and NewGroup.
type Config struct {
	// Election is the name: any bytes but '/', up to keys.MaxName of them.
	Election string
	// NodeID names this node: one running process for each ID. If two processes have the same ID by
	// mistake, each is a candidate of its own and neither removes the other's key, but neither
	// follows the other: while one leads, the other's status is Unknown. The process that starts
	// while the other's key is in the queue logs a warning to Logger.
	NodeID string
	// Address is where other nodes forward requests to. If it is empty, no requests are forwarded
	// here. SetAddress changes it later.
	Address string
	// AddressOf, if set, returns where this node forwards requests to while another node leads, in
	// place of the Address in the leader's value: for values that have none, such as those of two
	// fields, and for addresses that are different from here. It may block until ctx ends, and must
	// then return: ctx ends when another leader or value is known, when this node has won, and when
	// its round ends. It is called on a goroutine of its own, for each new leader or value and every
	// 5 s again, so that changes are followed.
	//
	// The status has the address once it is known. Until then, and while the address is empty, the
	// leader's Address is empty and requests wait as if there were no leader (eldest.ErrNoLeader).
	// After an error the last address for this leader stays. After an error or an empty address
	// AddressOf is called again after a pause of at most 1 s. The first of consecutive errors is
	// logged.
	AddressOf func(ctx context.Context, leader Leader) (string, error)
	// Source returns the clients.
	Source Source

	// Codec encodes and decodes the values of candidates. nil means identity.Protobuf.
	Codec identity.Codec
	// Session configures the sessions: TTL, heartbeat and so on.
	Session lease.Options
	// Candidate configures the candidacy. A hook that blocks delays the end of each round by Leave.
	Candidate election.Options
	// Observer configures the observation of the leader.
	Observer observe.Options

	// Priority is this node's priority as the leader. If it is not 0, the node publishes it in its
	// value and, when it would lead, yields to nodes in the queue with a higher priority; see
	// election.ByPriority for the guarantees and the effect on fairness. A node with 0 never yields
	// and counts as 0 for the others: give a priority to all nodes of a service, or to none.
	// It cannot be set together with Candidate.ShouldYield.
	Priority int32
	// Transfer makes this node take part in transfers of leadership (package transfer), for one
	// more watch and two more requests in each round. On request the node requeues, or its tenure
	// ends with eldest.ErrDraining and then the round, in the usual order. If etcd refuses its
	// request key, the node campaigns all the same and logs a warning to Logger.
	Transfer bool
	// Serve configures this part: which requests are accepted, and the hooks.
	Serve transfer.ServeOptions

	// TakeOver makes the first round that reaches etcd remove the keys of other instances with this
	// NodeID, so that a node that starts again after a crash does not wait until the lease of the
	// crashed instance expires. The key of a leader is removed at once, and the next candidate
	// leads.
	//
	// It is safe where an instance is started only after the previous one has ended: by a
	// supervisor on the same machine, or with an ID that the platform gives to one process at a
	// time. If the other instance is still running, its tenure ends with eldest.ErrDeposed in
	// milliseconds; if it is also partitioned from etcd, two instances lead until its deadline (see
	// election.Evict). If two processes run with one ID, each evicts the other once, when it
	// starts, and never in a later round.
	TakeOver bool

	// Standby, if set, runs while this node waits to lead, so that its caches are warm and its
	// connections open when it does. It is called once in each round, on a goroutine of its own, when
	// this node is registered, also if no other node leads. Its context carries the values of Run's
	// context, and ends when this node has won, and when the round ends without a win. The lead
	// function of the round is called after it has returned, and then sees all that it has
	// written (G7). So it must return at once when its context ends; until then this node holds
	// the key and does not lead. After Drain the node gives the key up, so that the next one leads,
	// and is no candidate until the function has returned (see Elector.Run).
	//
	// It may return earlier; the node remains in the queue. A suspended leader that leads on does
	// not call it again. It must not write as a leader does: it has no tenure and no token.
	Standby func(ctx context.Context, p *Positions)
	// Drain is how long the lead function may take to return after its context has ended, while
	// this node keeps its key; and the same for Standby. 0 means DefaultDrain.
	Drain time.Duration
	// Leave bounds the closing of the session at the end of a round; after that the lease is left
	// to expire. 0 means DefaultLeave.
	Leave time.Duration
	// Starts is how many elections of a Group enter or leave their queues at a time; each has one
	// request in flight. 0 means DefaultStarts. An Elector does not use it.
	Starts int
	// Backoff returns the pause after the n-th consecutive round that was not stable, counted from
	// 0, where a stable round counts as the first. nil means doubling from 100 ms to 5 s with jitter; a
	// pause is at least 5 ms.
	Backoff func(attempt int) time.Duration
	// Stable is how long a round must last for the back-off to start anew: as the leader or, if the
	// node never led, as a candidate. 0 means twice the granted TTL.
	Stable time.Duration
	// Logger logs each transition and, of consecutive failed requests to etcd that are repeated,
	// the 1st, 2nd, 4th, 8th and so on. Lines are not written on the elector's own goroutines. nil
	// means no log.
	Logger *slog.Logger
}

// withDefaults checks the config as one for an election, and fills it in.
func (c Config) withDefaults(name string) (Config, error) {
	switch err := (election.Config{Election: name}).Check(); {
	case err != nil:
		return c, err
	case c.NodeID == "":
		return c, invalid("Config.NodeID is empty")
	case c.Source == nil:
		return c, invalid("Config.Source is nil")
	case c.Priority != 0 && c.Candidate.ShouldYield != nil:
		return c, invalid("Config.Priority is %d and Config.Candidate.ShouldYield is not nil: set only one of them", c.Priority)
	case c.Drain < 0, c.Leave < 0, c.Stable < 0:
		return c, invalid("Config.Drain %v, Leave %v or Stable %v is negative", c.Drain, c.Leave, c.Stable)
	case c.Starts < 0:
		return c, invalid("Config.Starts %d is negative", c.Starts)
	}
	if err := errors.Join(c.Session.Check(), c.Candidate.Check(), c.Observer.Check(), c.Serve.Check()); err != nil {
		return c, err
	}
	if c.Codec == nil {
		c.Codec = identity.Protobuf{}
	}
	if c.Priority != 0 {
		c.Candidate.ShouldYield = election.ByPriority(func(value []byte) int {
			id, _ := c.Codec.Decode(value) // a foreign value has no priority: 0
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
