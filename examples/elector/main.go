// Command elector is a process of which one instance works at a time: the example of package
// elector without gRPC. Start it on several machines, each with a --node of its own; one of them
// works, and when it ends or crashes the next one does.
//
// The work is a counter in etcd: each leader reads the last count and continues it. Each write goes
// through the tenure's guard, so that a leader that was deposed and has not been notified yet
// changes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
)

func main() {
	election := flag.String("election", "counting", "the election: the same for all nodes")
	node := flag.String("node", "", "the name of this node; no other running process may have it")
	endpoints := flag.String("endpoints", "127.0.0.1:2379", "etcd's client endpoints, separated by commas")
	ttl := flag.Duration("ttl", 10*time.Second, "how long the others wait for a node that crashed")
	flag.Parse()
	if *node == "" {
		log.Fatal("--node is required")
	}
	// The first signal ends the context, and with it leadership: the next node works milliseconds
	// later. A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, *election, *node, strings.Split(*endpoints, ","), *ttl); err != nil {
		log.Fatal(err)
	}
}

// run campaigns until ctx ends.
func run(ctx context.Context, election, node string, endpoints []string, ttl time.Duration) error {
	client, err := elector.Dial(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	// By default slog's logger receives each change of the role, with the reason.
	return elector.Run(ctx, client, election, func(ctx context.Context, l *elector.Leadership) error {
		return count(ctx, l, node, "count-of/"+election)
	}, elector.WithNodeID(node), elector.WithTTL(ttl))
}

// count is the leader's work. It returns when ctx, and with it the tenure, ends; if it fails,
// leadership is given up, and this node campaigns again after a pause.
//
// The key is outside the range of the election: the guard refuses writes into that range.
func count(ctx context.Context, l *elector.Leadership, node, key string) error {
	fmt.Printf("%s leads with token %d\n", node, l.Token())
	defer fmt.Printf("%s has led\n", node)
	// The count of the last leader. The read is guarded like a write, so a deposed leader stops
	// here.
	left, err := l.KV().Get(ctx, key)
	if err != nil {
		return err
	}
	n := 0
	if len(left.Kvs) > 0 {
		if n, err = strconv.Atoi(string(left.Kvs[0].Value)); err != nil {
			return fmt.Errorf("the key %q: %w", key, err)
		}
	}
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n++
		if _, err := l.KV().Put(ctx, key, strconv.Itoa(n)); err != nil {
			return err // an error of eldest.ErrDeposed: another node leads
		}
		fmt.Printf("%s counted %d\n", node, n)
	}
}
