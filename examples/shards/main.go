// Command shards is a process that leads its share of many elections: the example of elector.Group.
// Start it on several machines, each with a --node of its own. All of them campaign in all
// elections, on one session each; when a process joins, ends or crashes, the others lead fewer or
// more.
//
// No process assigns elections. Each one follows two rules, for which it needs only the data in
// etcd:
//
//   - A process that already leads its share yields to the next candidate instead of leading one
//     more election. The share is the number of elections divided by the number of candidates in
//     the queue, rounded up: so as long as an election has no leader, some process leads less than
//     its share, and takes the election when it is the oldest candidate.
//   - A process that leads more than its share, because another one has joined, ends as many
//     tenures, and is then at the end of those queues.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

func main() {
	var s shards
	flag.StringVar(&s.prefix, "prefix", "shard", "prefix of the elections' names: the same for all nodes")
	flag.Int64Var(&s.n, "shards", 1000, "number of elections: the same for all nodes")
	flag.StringVar(&s.node, "node", "", "the name of this node; no other running process may have it")
	flag.BoolVar(&s.trail, "trail", false, "print when each tenure begins and ends")
	endpoints := flag.String("endpoints", "127.0.0.1:2379", "etcd's client endpoints, separated by commas")
	ttl := flag.Duration("ttl", 10*time.Second, "how long the others wait for a node that crashed")
	flag.Parse()
	if s.node == "" || s.n < 1 {
		log.Fatal("--node is required, and --shards must be positive")
	}
	// The first signal ends the context, and with it all tenures. A second signal ends the process
	// at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := s.run(ctx, strings.Split(*endpoints, ","), *ttl); err != nil {
		log.Fatal(err)
	}
}

// shards are the elections of this process.
type shards struct {
	prefix, node string
	n            int64
	trail        bool

	led    atomic.Int64  // how many it leads
	giveUp chan struct{} // each value ends one tenure
}

func (s *shards) name(i int64) string { return fmt.Sprintf("%s-%d", s.prefix, i) }

// share returns how many elections one of so many nodes leads at most.
func (s *shards) share(nodes int) int64 { return (s.n + int64(nodes) - 1) / int64(nodes) }

// run campaigns in all elections until ctx ends.
func (s *shards) run(ctx context.Context, endpoints []string, ttl time.Duration) error {
	client, err := elector.Dial(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	s.giveUp = make(chan struct{})
	cfg := elector.Config{NodeID: s.node, Source: elector.Always(elector.Client(client)), Session: lease.Options{TTL: ttl}}
	cfg.Candidate = election.Options{ShouldYield: func(_ eldest.Candidate, others []eldest.Candidate) bool {
		return s.led.Load() >= s.share(len(others)+1)
	}}
	group, err := elector.NewGroup(cfg)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	for i := range s.n {
		running.Go(func() {
			if err := group.Run(ctx, s.name(i), s.lead); !errors.Is(err, context.Canceled) {
				log.Print(err)
			}
		})
	}
	return s.balance(ctx, client)
}

// lead is the work of one shard. It ends with its tenure, or when this node leads too many.
func (s *shards) lead(ctx context.Context, l *elector.Leadership) error {
	s.led.Add(1)
	defer s.led.Add(-1)
	s.note("+", l)
	defer s.note("-", l)
	select {
	case <-ctx.Done():
	case <-s.giveUp:
	}
	return nil
}

func (s *shards) note(what string, l *elector.Leadership) {
	if s.trail {
		fmt.Println(what, l.Election(), int64(l.Token()), time.Now().UnixNano())
	}
}

// balance ends the tenures beyond the share, once a second, and prints how many elections this node
// leads whenever that has changed.
func (s *shards) balance(ctx context.Context, client *clientv3.Client) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// All nodes are in all queues, so one queue has all nodes.
		queue, err := observe.Queue(ctx, client, nil, s.name(0))
		if err != nil || len(queue) == 0 {
			continue // etcd is unavailable, or this node has not registered yet
		}
		led := s.led.Load()
		if now := fmt.Sprintf("%s leads %d of %d as one of %d", s.node, led, s.n, len(queue)); now != last {
			fmt.Println(now)
			last = now
		}
		for range led - s.share(len(queue)) {
			select {
			case s.giveUp <- struct{}{}:
			case <-ctx.Done():
				return nil
			case <-tick.C: // they have ended for another reason
			}
		}
	}
}
