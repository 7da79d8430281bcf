package balance_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/examples/customise/balance"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
)

// Seven shards, three processes that join and one that leaves.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	var mu sync.Mutex
	led := map[string]int{} // how many shards each member leads
	leave := map[string]func(){}
	join := func(name string) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() {
			_ = balance.Run(ctx, balance.Config{
				Group: "workers", Member: name, Shards: names("shard", 7), Client: client,
				Lead: func(ctx context.Context, _ *elector.Leadership) error {
					count := func(n int) { mu.Lock(); led[name] += n; mu.Unlock() }
					count(1)
					defer count(-1)
					<-ctx.Done()
					return nil
				},
				Options: []elector.Option{elector.WithTTL(30 * time.Second)},
			})
		})
		leave[name] = func() { cancel(); running.Wait() }
	}
	settled := func(what string) {
		stage.Until(ctx, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			all := 0
			for name := range leave {
				all += led[name]
				if led[name] == 0 || led[name] > balance.Cap(7, len(leave)) {
					return false
				}
			}
			return all == 7
		})
		fmt.Printf("%s: 7 shards, each member leads at most %d\n", what, balance.Cap(7, len(leave)))
	}
	for _, name := range []string{"anna", "bert", "carl"} {
		join(name)
		settled(name + " joins")
	}
	leave["anna"]()
	delete(leave, "anna")
	settled("anna leaves")
	leave["bert"]()
	leave["carl"]()
	// Output:
	// anna joins: 7 shards, each member leads at most 7
	// bert joins: 7 shards, each member leads at most 4
	// carl joins: 7 shards, each member leads at most 3
	// anna leaves: 7 shards, each member leads at most 4
}
