package eldest_test

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
	"github.com/eldest-io/eldest/observe"
)

// enter makes a session and a candidate; leave closes both.
func enter(ctx context.Context, client *clientv3.Client, name, value string) (candidate *election.Candidate, leave func()) {
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: 10 * time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	candidate, err = election.New(election.Config{
		Election: name, Session: session, KV: client, Watcher: client, Value: []byte(value),
	})
	if err != nil {
		log.Fatal(err)
	}
	return candidate, func() {
		_ = candidate.Close(ctx)
		_ = session.Close(ctx)
	}
}

// A program that leads and does work that etcd itself protects.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := etcdtest.ForExample()
	defer stop()

	candidate, leave := enter(ctx, client, "billing", "node-1")
	defer leave()
	leadership, err := candidate.Campaign(ctx) // blocks until this process leads
	if err != nil {
		log.Fatal(err)
	}
	err = leadership.Lead(ctx, func(ctx context.Context) error {
		// ctx ends with the tenure, and before the lease can expire. etcd refuses the write once
		// the tenure is over, even if this process has not noticed that yet.
		if _, err := leadership.KV().Put(ctx, "state", "written by the leader"); err != nil {
			return err
		}
		leader, err := observe.LeaderOf(ctx, client, "billing")
		fmt.Printf("%s leads: %t\n", leader.Value, leader.Token == leadership.Token())
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = observe.LeaderOf(ctx, client, "billing")
	fmt.Println("afterwards no candidate leads:", errors.Is(err, eldest.ErrNoLeader))
	state, err := client.Get(ctx, "state")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("state: %s\n", state.Kvs[0].Value)
	// Output:
	// node-1 leads: true
	// afterwards no candidate leads: true
	// state: written by the leader
}

// The queue: each candidate waits for the one before it, and leads when that one leaves.
func Example_queue() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := etcdtest.ForExample()
	defer stop()

	leaders := make(chan *election.Leadership)
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		candidate, leave := enter(ctx, client, "billing", node)
		defer leave()
		place, err := candidate.Register(ctx) // queued now; Await may be called later
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is number %d\n", node, place.Queue)
		go func() {
			leadership, err := candidate.Await(ctx)
			if err != nil {
				log.Fatal(err)
			}
			leaders <- leadership
		}()
	}
	for range 3 {
		leadership := <-leaders
		leader, err := observe.LeaderOf(ctx, client, "billing")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s leads and resigns\n", leader.Value)
		if err := leadership.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// node-1 is number 1
	// node-2 is number 2
	// node-3 is number 3
	// node-1 leads and resigns
	// node-2 leads and resigns
	// node-3 leads and resigns
}

// etcd refuses a write that arrives after the tenure, from a process that was stopped while it
// wrote. With the token other stores can do the same.
func Example_lateWrite() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := etcdtest.ForExample()
	defer stop()

	first, leaveFirst := enter(ctx, client, "billing", "node-1")
	defer leaveFirst()
	old, err := first.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	guard := old.Guard()
	guard.Alive = nil // a stopped process checks nothing; only etcd does

	// Meanwhile an operator removes its key, and the next one leads.
	if _, err := client.Delete(ctx, old.Key()); err != nil {
		log.Fatal(err)
	}
	second, leaveSecond := enter(ctx, client, "billing", "node-2")
	defer leaveSecond()
	current, err := second.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}

	_, err = guard.KV(client).Put(ctx, "state", "late")
	fmt.Println("refused:", errors.Is(err, eldest.ErrDeposed))
	state, err := client.Get(ctx, "state")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied:", len(state.Kvs) > 0)
	fmt.Println("the new token is greater:", current.Token() > old.Token())
	<-old.Done()
	fmt.Println("the old tenure was ended:", errors.Is(old.Err(), eldest.ErrDeposed))
	// Output:
	// refused: true
	// applied: false
	// the new token is greater: true
	// the old tenure was ended: true
}

// A client that only observes needs no lease and is not a candidate.
func Example_observer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := etcdtest.ForExample()
	defer stop()

	observer, err := observe.New(observe.Config{
		Election: "billing", KV: client, Watcher: client,
		Options: observe.Options{
			Timeout: 10 * time.Second, // of a slow etcd
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer observer.Close()
	states := observer.Subscribe()
	show := func() {
		state, err := states.Next(ctx) // the newest state, once
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v %q\n", state.Kind, state.Leader.Value)
	}
	show()
	candidate, leave := enter(ctx, client, "billing", "node-1")
	defer leave()
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	show()
	if err := leadership.Proclaim(ctx, []byte("node-1, ready")); err != nil {
		log.Fatal(err)
	}
	show()
	if err := leadership.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// nobody ""
	// led "node-1"
	// led "node-1, ready"
	// nobody ""
}
