package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Anna leads and writes through her guard, Bert waits; Anna resigns, Bert leads.
func Example() {
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

	var sessions []*lease.Session
	defer func() {
		for _, session := range sessions {
			_ = session.Close(ctx) // revokes: no key is left
		}
	}()
	stand := func(name string) *election.Candidate {
		session, err := lease.Open(ctx, lease.Config{Lease: client})
		if err != nil {
			log.Fatal(err)
		}
		sessions = append(sessions, session)
		candidate, err := election.New(election.Config{
			Election: "reports", Session: session, KV: client, Watcher: client, Value: []byte(name),
		})
		if err != nil {
			log.Fatal(err)
		}
		return candidate
	}
	anna, bert := stand("anna"), stand("bert")

	leader, err := anna.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	place, err := bert.Register(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("bert is number", place.Queue, "and waits for anna:", place.Predecessor == anna.Key())

	_, err = leader.Txn(ctx).Then(clientv3.OpPut("report", "by anna")).Commit()
	fmt.Println("anna writes:", err)
	if err := leader.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("anna no longer leads:", errors.Is(leader.Err(), eldest.ErrResigned))

	next, err := bert.Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("bert leads, with a greater token:", next.Token() > leader.Token())
	_, err = leader.Txn(ctx).Then(clientv3.OpPut("report", "too late")).Commit()
	fmt.Println("anna writes:", errors.Is(err, eldest.ErrNotLeading))
	// Output:
	// bert is number 2 and waits for anna: true
	// anna writes: <nil>
	// anna no longer leads: true
	// bert leads, with a greater token: true
	// anna writes: true
}

// With heartbeats a tenure may be suspended while etcd does not respond: Lead then keeps the key,
// and the next campaign continues with the same token, if no successor has evicted the candidate.
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
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{Heartbeat: lease.Heartbeat{Timeout: time.Second}}})
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
