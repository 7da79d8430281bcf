package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// Of three candidates the first one leads, and leadership is handed over to the last one. The
// second one requeues for that and is behind it afterwards.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	client, stop := etcdtest.ForExample()
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	opened, won := make(chan string), make(chan string, 3)
	stand := func(name string) *election.Candidate {
		session, err := lease.Open(ctx, lease.Config{Lease: client})
		if err != nil {
			log.Fatal(err)
		}
		candidate, err := election.New(election.Config{Election: "reports", Session: session, KV: client, Watcher: client})
		if err != nil {
			log.Fatal(err)
		}
		running.Go(func() { // lead when it is our turn
			defer func() { _ = session.Close(context.Background()) }()
			leader, err := candidate.Campaign(ctx)
			if err != nil {
				return
			}
			won <- name
			_ = leader.Lead(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), eldest.ErrDraining) {
					fmt.Println(name, "finishes; no candidate leads yet")
				}
				return nil
			})
		})
		running.Go(func() { // take part in transfers
			_ = transfer.Serve(ctx, transfer.Config{
				Candidate: candidate, Session: session, KV: client, Watcher: client,
				ServeOptions: transfer.ServeOptions{Hooks: transfer.Hooks{Opened: func(transfer.OpenedEvent) {
					select {
					case opened <- name:
					case <-ctx.Done():
					}
				}}},
			})
		})
		<-opened // it is queued and takes part
		return candidate
	}
	stand("anna")
	fmt.Println(<-won, "leads")
	stand("bert")
	carl := stand("carl")

	queue, err := transfer.Survey(ctx, client, "reports")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := queue.Plan(carl.Key(), transfer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("candidates that requeue:", len(plan.Back), "of", len(queue.Members))

	result, err := transfer.To(ctx, transfer.Client(client), "reports", carl.Key(), transfer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-won, "leads, with the key it had:", result.Leader.Token == plan.Target.Token)
	// Output:
	// anna leads
	// candidates that requeue: 1 of 3
	// anna finishes; no candidate leads yet
	// carl leads, with the key it had: true
}
