package balance_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/balance"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/lease"
)

// led has the leader of each shard.
type led struct {
	mu sync.Mutex
	by map[string]string
}

// work returns the lead function of a member: it leads a shard until its context ends.
func (l *led) work(member string) func(context.Context, *election.Leadership) error {
	return func(ctx context.Context, tenure *election.Leadership) error {
		l.mu.Lock()
		l.by[tenure.Election()] = member
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.by[tenure.Election()] == member {
			delete(l.by, tenure.Election())
		}
		return nil
	}
}

// each counts the shards of each member.
func (l *led) each() (loads map[string]int, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	loads = map[string]int{}
	for _, member := range l.by {
		loads[member]++
	}
	return loads, len(l.by)
}

// Seven shards, three processes that join and one that leaves.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	l := &led{by: map[string]string{}}
	leave := map[string]func(){}
	settled := func(what string) {
		balanced := func() bool {
			loads, all := l.each()
			for _, load := range loads {
				if load > balance.Cap(7, len(leave)) {
					return false
				}
			}
			return all == 7 && len(loads) == len(leave)
		}
		stage.Until(ctx, what, balanced)
		fmt.Printf("%s: 7 shards, each member leads at most %d\n", what, balance.Cap(7, len(leave)))
	}
	for _, name := range []string{"anna", "bert", "carl"} {
		leave[name] = join(ctx, client, name, l)
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

// join makes a member take part until leave is called.
func join(ctx context.Context, client *clientv3.Client, name string, l *led) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	session, closeSession := stage.Open(ctx, client, lease.Options{TTL: 30 * time.Second})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = balance.Run(ctx, balance.Config{
			Group: "workers", Member: name, Shards: names("shard", 7),
			Session: session, KV: client, Watcher: client, Lead: l.work(name),
		})
	}()
	return func() {
		cancel()
		<-done
		closeSession()
	}
}
