package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A program that leads whenever it is elected, until it is stopped.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	etcd, stopEtcd := etcdtest.ForExample()
	defer stopEtcd()
	client, err := elector.Dial(clientv3.Config{Endpoints: etcd.Endpoints()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = elector.Run(ctx, client, "billing", func(ctx context.Context, l *elector.Leadership) error {
		if _, err := l.KV().Put(ctx, "state", "mine"); err != nil { // refused once the tenure is over
			return err
		}
		fmt.Println("leads")
		stop() // or whatever ends the program
		<-ctx.Done()
		return nil
	}, elector.WithNodeID("node-1"))
	fmt.Println("stopped:", err)
	// Output:
	// leads
	// stopped: <nil>
}

// The next leader prepares itself while it waits. The two functions never overlap, so they share the
// cache without a lock.
func ExampleWithStandby() {
	ctx := context.Background()
	etcd, stopEtcd := etcdtest.ForExample()
	defer stopEtcd()
	client, err := elector.Dial(clientv3.Config{Endpoints: etcd.Endpoints()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	leads, stopFirst := make(chan struct{}), make(chan struct{})
	go func() {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		_ = elector.Run(ctx, client, "prices", func(ctx context.Context, l *elector.Leadership) error {
			if _, err := l.KV().Put(ctx, "price", "7"); err != nil {
				return err
			}
			close(leads)
			<-stopFirst
			stop()
			return nil
		}, elector.WithNodeID("node-1"), elector.WithLogger(slog.New(slog.DiscardHandler)))
	}()
	<-leads

	ctx, stop := context.WithCancel(ctx)
	var price string // the cache
	standby := func(ctx context.Context, p *elector.Positions) {
		resp, err := client.Get(ctx, "price")
		if err != nil || len(resp.Kvs) == 0 {
			return
		}
		price = string(resp.Kvs[0].Value)
		for {
			position, err := p.Next(ctx)
			if err != nil {
				return // this node is about to lead, or stops
			}
			if leader, ok := position.Status.Leader(); ok && position.Ahead == 1 {
				fmt.Println("next after", leader.NodeID)
				close(stopFirst)
				return // ready: it may return before the win
			}
		}
	}
	err = elector.Run(ctx, client, "prices", func(ctx context.Context, _ *elector.Leadership) error {
		if price == "" { // it led at once, or was not ready: read it now
			return errors.New("no price")
		}
		fmt.Println("leads, and knows the price:", price)
		stop()
		<-ctx.Done()
		return nil
	}, elector.WithNodeID("node-2"), elector.WithStandby(standby), elector.WithLogger(slog.New(slog.DiscardHandler)))
	fmt.Println("stopped:", err)
	// Output:
	// next after node-1
	// leads, and knows the price: 7
	// stopped: <nil>
}
