package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// An observer reports the leaders of an election with two candidates, one after the other. The
// candidates are the smallest that etcd allows: a key with a lease.
func Example() {
	ctx := context.Background()
	client, stop := etcdtest.ForExample()
	defer stop()
	stand := func(value string) clientv3.LeaseID {
		lease, err := client.Grant(ctx, 60)
		if err != nil {
			log.Fatal(err)
		}
		key := fmt.Sprintf("reports/%x", lease.ID)
		if _, err := client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
			log.Fatal(err)
		}
		return lease.ID
	}

	_, err := observe.LeaderOf(ctx, client, "reports")
	fmt.Println("no leader yet:", errors.Is(err, eldest.ErrNoLeader))

	observer, err := observe.New(observe.Config{
		Election: "reports", KV: client, Watcher: client,
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
		state, err := states.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v %q\n", state.Kind, state.Leader.Value)
	}
	show()
	anna := stand("anna")
	show()
	stand("bert")
	queue, err := observe.Queue(ctx, client, nil, "reports")
	if err != nil {
		log.Fatal(err)
	}
	for i, candidate := range queue {
		fmt.Println(i, string(candidate.Value))
	}
	if _, err := client.Revoke(ctx, anna); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// no leader yet: true
	// nobody ""
	// led "anna"
	// 0 anna
	// 1 bert
	// led "bert"
}
