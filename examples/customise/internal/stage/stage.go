package stage

import (
	"context"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Start starts an etcd of one member and returns a client of it, and a context that bounds
// the example. stop ends all three.
func Start() (ctx context.Context, client *clientv3.Client, stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	client, end := etcdtest.ForExample()
	return ctx, client, func() { cancel(); end() }
}

// Open opens a session. leave closes it.
func Open(ctx context.Context, client *clientv3.Client, options lease.Options) (session *lease.Session, leave func()) {
	session = Must(lease.Open(ctx, lease.Config{Lease: client, Options: options}))
	return session, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = session.Close(ctx)
	}
}

// Enter makes a candidate and fills in the client, and a session of its own if cfg has none. leave
// closes both.
func Enter(ctx context.Context, client *clientv3.Client, cfg election.Config) (candidate *election.Candidate, leave func()) {
	end := func() {}
	if cfg.Session == nil {
		cfg.Session, end = Open(ctx, client, lease.Options{TTL: 30 * time.Second})
	}
	cfg.KV, cfg.Watcher = client, client
	candidate = Must(election.New(cfg))
	return candidate, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = candidate.Close(ctx)
		end()
	}
}

// Until waits until condition is true. If ctx ends before that, it ends the program.
func Until(ctx context.Context, what string, condition func() bool) {
	for !condition() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			log.Fatalf("not in time: %s", what)
		}
	}
}

// Must returns v, or ends the program with err.
func Must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
