package etcdpeer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// The shortest failure detection that Eldest allows: the shortest TTL that etcd grants with its default
// election timeout, and the shortest heartbeat timeout.
const (
	eldestTTL       = 2 * time.Second
	eldestHeartbeat = lease.MinHeartbeat
)

// eldestClientText describes elector.Dial.
const eldestClientText = "client as made by elector.Dial: gRPC keepalives every 10 s with a timeout of 3 s"

// Eldest is this project.
func Eldest() peer.System {
	return peer.System{
		Name: "eldest", Title: "Eldest",
		Recipe: "Each candidate writes a key with a lease. The candidates are queued by the create revisions of their keys, " +
			"and each watches its predecessor's key only. The oldest candidate leads until its lease or its heartbeats are no longer certain.",
		Links: []peer.Link{
			{Text: "Eldest's packages", URL: "https://pkg.go.dev/github.com/eldest-io/eldest"},
			{Text: "how a candidate campaigns", URL: "https://pkg.go.dev/github.com/eldest-io/eldest/election"},
		},
		Module: "github.com/eldest-io/eldest",
		Guard:  "Each write is a transaction that etcd commits only while the leader's key exists with the create revision of its tenure.",
		Unfair: []string{
			"To its advantage: the authors of Eldest wrote this benchmark.",
			"To its advantage, with shortest: it is the only contender with a guard process, the keeper. That process's memory, requests " +
				"(one every 30 s, on a connection of its own) and bytes are not counted. A cut of the leader's network does not cut the " +
				"keeper's; the keeper does nothing then.",
			"To its advantage: all observers of a process share one watch, in the library; the other clients open one for each observer, " +
				"or poll for each. A program can share one with these clients, too.",
			"To its disadvantage: each candidate of a process has a session, because a session has one key in an election. " +
				"A program with many elections has one session for all of them.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {
				Values: []string{"lease of 10 s, renewed every 2.5 s", "no keeper", "no heartbeats", eldestClientText},
				Loss:   lease.DefaultTTL,
			},
			peer.Shortest: {
				Values: []string{
					"lease of 2 s, the shortest that etcd grants with its default election timeout of 1 s",
					"a leader without a heartbeat for 500 ms is replaced; 500 ms is the shortest timeout that Eldest accepts",
					"a keeper for each process, which revokes the process's leases when it has died",
					eldestClientText,
				},
				Loss: eldestHeartbeat,
			},
		},
		Start: start,
		Dial:  dialEldest,
	}
}

// eldestClient is the client of a participant that uses Eldest.
type eldestClient struct {
	*connection
	session lease.Options
	keeper  *keeper.Keeper // nil without one
	closing closing

	mu       sync.Mutex
	observer *observe.Observer // of all observers of this process; nil before the first
}

func dialEldest(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	conn, err := open(ctx, cfg, clientv3.Config{}, elector.Dial)
	if err != nil {
		return nil, err
	}
	c := &eldestClient{connection: conn}
	if cfg.Setting == peer.Shortest {
		if c.keeper, err = startKeeper(ctx, cfg.Endpoints); err != nil {
			return nil, errors.Join(err, conn.etcd.Close())
		}
		c.session = lease.Options{TTL: eldestTTL, Heartbeat: lease.Heartbeat{Timeout: eldestHeartbeat}, Keeper: c.keeper}
	}
	return c, nil
}

// startKeeper starts the keeper of this process. Its main calls keeper.Serve with connect.Kept, as the main
// of the command does.
func startKeeper(ctx context.Context, endpoints []string) (*keeper.Keeper, error) {
	with, err := json.Marshal(&connect.Flags{Endpoints: endpoints, DialTimeout: 2 * time.Second, CommandTimeout: leaving})
	if err != nil {
		return nil, err
	}
	return keeper.Start(ctx, with)
}

func (c *eldestClient) Candidate(id string) (peer.Candidate, error) {
	return &eldestCandidate{client: c, id: id}, nil
}

// Observe subscribes to the observer of this process, which has one watch for all subscribers.
func (c *eldestClient) Observe(ctx context.Context, leads func(id string)) error {
	observer, err := c.sharedObserver()
	if err != nil {
		return err
	}
	var told eldest.Token
	for states := observer.Subscribe(); ; {
		state, err := states.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the caller has ended it
		case err != nil:
			return fmt.Errorf("observe: %w", err)
		case state.Kind == eldest.Led && state.Leader.Token != told:
			told = state.Leader.Token
			leads(string(state.Leader.Value))
		}
	}
}

func (c *eldestClient) sharedObserver() (*observe.Observer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observer != nil {
		return c.observer, nil
	}
	observer, err := observe.New(observe.Config{Election: c.cfg.Election, KV: c.etcd, Watcher: c.etcd})
	if err != nil {
		return nil, err
	}
	if err := c.closing.add(func(context.Context) error { observer.Close(); return nil }); err != nil {
		observer.Close()
		return nil, err
	}
	c.observer = observer
	return observer, nil
}

// Guards returns the keeper: it would revoke the leases if this process alone died.
func (c *eldestClient) Guards() []int {
	if c.keeper == nil {
		return nil
	}
	return []int{c.keeper.Pid()}
}

func (c *eldestClient) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	c.closing.all(ctx)
	return errors.Join(c.keeper.Close(ctx), c.etcd.Close())
}
