package order_test

import (
	"fmt"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/order"
)

// A rolling update: three old processes, of which one leads, and a new one. The old leader
// ends; the new process leads, and not the old one that will be replaced next.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	leaders := make(chan *election.Leadership)
	for _, name := range []string{"old-1", "old-2", "old-3", "new-1"} {
		candidate, leave := stage.Enter(ctx, client, election.Config{
			Election: "jobs", Value: []byte(name),
			Options: election.Options{Ordering: order.Queue{Before: order.YoungestFirst}},
		})
		defer leave()
		if name == "old-1" {
			go func() { leaders <- stage.Must(candidate.Campaign(ctx)) }()
			stage.Until(ctx, "a leader", func() bool {
				_, err := order.LeaderOf(ctx, client, "jobs")
				return err == nil
			})
			continue
		}
		stage.Must(candidate.Register(ctx))
		go func() {
			if leadership, err := candidate.Await(ctx); err == nil {
				leaders <- leadership
			}
		}()
	}

	fence := int64(0)
	for range 4 {
		leadership := <-leaders
		name := stage.Must(client.Get(ctx, leadership.Key())).Kvs[0].Value
		next := stage.Must(order.Fence(ctx, client, leadership))
		fmt.Printf("%s leads; the fence has grown: %t\n", name, int64(next) > fence)
		fence = int64(next)
		if err := leadership.Resign(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// old-1 leads; the fence has grown: true
	// new-1 leads; the fence has grown: true
	// old-3 leads; the fence has grown: true
	// old-2 leads; the fence has grown: true
}
