package etcdpeer

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// The TTLs of a session, in seconds: the package's default, and the shortest that etcd grants with its
// default election timeout.
const (
	sessionDefault  = 60
	sessionShortest = 2
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
				Loss:   sessionDefault * time.Second,
			},
			peer.Shortest: {
				Values: []string{"session TTL of 2 s, the shortest that etcd grants with its default election timeout of 1 s", clientText},
				Loss:   sessionShortest * time.Second,
			},
		},
		Start: start,
		Dial:  dialConcurrency,
	}
}

// concurrencyClient is the client of a participant that uses package concurrency.
type concurrencyClient struct {
	*connection
	ttl     int
	closing closing

	mu       sync.Mutex
	watching *concurrency.Session // of all observers of this process; nil before the first
}

// dialConcurrency sets what the README of etcd's client sets.
func dialConcurrency(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	conn, err := open(ctx, cfg, clientv3.Config{DialTimeout: 5 * time.Second}, clientv3.New)
	if err != nil {
		return nil, err
	}
	c := &concurrencyClient{connection: conn, ttl: sessionDefault}
	if cfg.Setting == peer.Shortest {
		c.ttl = sessionShortest
	}
	conn.etcd.KV = reads{conn.etcd.KV}
	return c, nil
}

// session opens a session. The package keeps a context for the session's whole life, and ctx bounds the opening
// only.
func (c *concurrencyClient) session(ctx context.Context) (s *concurrency.Session, end func(context.Context) error, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	attached := context.AfterFunc(ctx, cancel)
	s, err = concurrency.NewSession(c.etcd, concurrency.WithTTL(c.ttl), concurrency.WithContext(life))
	if !attached() && err == nil {
		s.Orphan()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	var once sync.Once
	end = func(ctx context.Context) (err error) {
		once.Do(func() {
			// Close has a time limit of its own, the TTL, which may be longer than ctx.
			defer context.AfterFunc(ctx, cancel)()
			err = s.Close()
			cancel()
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				err = nil // the lease has expired
			}
		})
		return err
	}
	if err := c.closing.add(end); err != nil {
		return nil, nil, errors.Join(err, end(ctx))
	}
	return s, end, nil
}

func (c *concurrencyClient) Candidate(id string) (peer.Candidate, error) {
	return &concurrencyCandidate{client: c, id: id}, nil
}

// Observe ends and begins again when the package closes its channel, as its documentation asks: that happens
// when the watch breaks.
func (c *concurrencyClient) Observe(ctx context.Context, leads func(id string)) error {
	s, err := c.observers(ctx)
	if err != nil {
		return err
	}
	e := concurrency.NewElection(s, c.cfg.Election)
	var told int64
	for {
		for resp := range e.Observe(ctx) {
			if leader := resp.Kvs[0]; leader.CreateRevision != told {
				told = leader.CreateRevision
				leads(string(leader.Value))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.etcd.Ctx().Done():
			return context.Cause(c.etcd.Ctx())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// observers returns the session of this process's observers. The package requires one, and uses only its
// client.
func (c *concurrencyClient) observers(ctx context.Context) (*concurrency.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching != nil {
		return c.watching, nil
	}
	s, _, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	c.watching = s
	return s, nil
}

func (c *concurrencyClient) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	c.closing.all(ctx)
	return c.etcd.Close()
}
