package elector_test

import (
	"context"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A program that leads whenever it is elected, until it is stopped.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	cluster, err := etcdtest.New(ctx, etcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	client, err := elector.Dial(clientv3.Config{Endpoints: cluster.Endpoints()})
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
