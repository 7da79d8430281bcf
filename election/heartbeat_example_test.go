package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// With heartbeats a tenure may be suspended while etcd stands still: Lead then keeps the key, and the next
// campaign leads on with the same token, if nobody has evicted the candidate.
func Example_heartbeats() {
	ctx := context.Background()
	cluster, err := etcdtest.New(ctx, etcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client, err := cluster.Dial()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	session, err := lease.Open(ctx, lease.Config{Lease: client, Heartbeat: lease.Heartbeat{Timeout: time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	candidate, err := election.New(election.Config{Election: "reports", Session: session, KV: client, Watcher: client})
	if err != nil {
		log.Fatal(err)
	}
	for {
		l, err := candidate.Campaign(ctx)
		if err != nil {
			log.Fatal(err)
		}
		err = l.Lead(ctx, func(context.Context) error {
			fmt.Println("leads")
			return nil
		})
		if !errors.Is(err, eldest.ErrSuspended) {
			return
		}
	}
	// Output: leads
}
