package etcdpeer

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// The TTLs of a session: the package's default, and the shortest that etcd grants with its default election
// timeout.
const (
	sessionDefault  = 60 * time.Second
	sessionShortest = 2 * time.Second
)

// clientText describes the client that the README of etcd's client makes.
const clientText = "client as in the README of etcd's client: a dial timeout of 5 s and no keepalives"

// Concurrency is the package of etcd's own client.
func Concurrency() peer.System {
	return peer.System{
		Name: "concurrency", Title: "etcd's concurrency package",
		Recipe: "Each candidate writes a key with the lease of its session. The candidates are queued by the create revisions of their keys, " +
			"and each watches its predecessor's key only. A winner leads until its session is done.",
		Links: []peer.Link{
			{Text: "package concurrency", URL: "https://pkg.go.dev/go.etcd.io/etcd/client/v3/concurrency"},
			{Text: "etcd's notes on leases and locks", URL: "https://etcd.io/docs/v3.6/learning/why/"},
		},
		Module: "go.etcd.io/etcd/client/v3",
		Guard: "Each write is a transaction that compares the create revision of the leader's key (Election.Key and Rev). " +
			"The package has no such method: programs add it, as etcd's documentation advises.",
		Unfair: []string{
			"To its disadvantage: its default TTL of 60 s is a matter of taste, and programs can set a shorter one.",
			"To its disadvantage: each candidate of a process has a session, because a session has one key in an election. " +
				"A program with many elections can have one session for all of them.",
			"To its disadvantage: each observer of a process has a watch of its own, as the package opens it. A program can share one among them.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {
				Values: []string{"session TTL of 60 s, the package's default", clientText},
				Loss:   sessionDefault,
			},
			peer.Shortest: {
				Values: []string{"session TTL of 2 s, the shortest that etcd grants with its default election timeout of 1 s", clientText},
				Loss:   sessionShortest,
			},
		},
		Start: start,
		Dial:  dialConcurrency,
	}
}

// dialConcurrency sets what the README of etcd's client sets.
func dialConcurrency(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	theirs, err := contender.Named(contender.Concurrency)
	if err != nil {
		return nil, err
	}
	conn, err := open(ctx, cfg, clientv3.Config{DialTimeout: 5 * time.Second}, clientv3.New)
	if err != nil {
		return nil, err
	}
	conn.etcd.KV = reads{conn.etcd.KV}
	ttl := sessionDefault
	if cfg.Setting == peer.Shortest {
		ttl = sessionShortest
	}
	return newClient(conn, ttl, func(func()) contender.Contender { return theirs }, contender.ErrRefused), nil
}

// queuedKey is the key of a campaign's predecessor in its context.
type queuedKey struct{}

// predecessor notifies a campaign, once, that it has a predecessor.
type predecessor struct {
	told   bool
	queued func()
}

// reads is a client's KV that sees the answers to the reads of campaigns. After the registration a campaign
// reads its predecessor; if there is one, it is queued. The package itself has no such notification.
type reads struct{ clientv3.KV }

func (r reads) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := r.KV.Get(ctx, key, opts...)
	if p, ok := ctx.Value(queuedKey{}).(*predecessor); ok && err == nil && len(resp.Kvs) > 0 && !p.told {
		p.told = true
		p.queued()
	}
	return resp, err
}
