package etcdpeer

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
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
	*client
	keeper *keeper.Keeper // nil without one
}

func dialEldest(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	conn, err := open(ctx, cfg, clientv3.Config{}, elector.Dial)
	if err != nil {
		return nil, err
	}
	c := &eldestClient{}
	var heartbeat time.Duration
	ttl := lease.DefaultTTL
	if cfg.Setting == peer.Shortest {
		ttl, heartbeat = eldestTTL, eldestHeartbeat
		if c.keeper, err = startKeeper(ctx, cfg.Endpoints); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	c.client = newClient(conn, ttl, func(queued func()) contender.Contender {
		return contender.Ours{
			Lease: func(cfg *lease.Config) { cfg.Keeper, cfg.Heartbeat.Timeout = c.keeper, heartbeat },
			Registered: func(p election.Position) { // two calls, as in elector.Run
				if p.Queue != 1 { // 0 means that the queue is long
					queued()
				}
			},
		}
	}, eldest.ErrNotLeading, eldest.ErrDeposed)
	return c, nil
}

// startKeeper starts the keeper of this process. Its main calls keeper.Serve with connect.Kept, as the main
// of the command does.
func startKeeper(ctx context.Context, endpoints []string) (*keeper.Keeper, error) {
	with, err := json.Marshal(&connect.Flags{Endpoints: endpoints, DialTimeout: 2 * time.Second, CommandTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return keeper.Start(ctx, with)
}

// Guards returns the keeper: it would revoke the leases if this process alone died.
func (c *eldestClient) Guards() []int {
	if c.keeper == nil {
		return nil
	}
	return []int{c.keeper.Pid()}
}

func (c *eldestClient) Close() error {
	c.life.End()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(c.keeper.Close(ctx), c.etcd.Close())
}
