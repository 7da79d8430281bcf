package curator_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// reader runs one node that has a copy of the data as well, and answers Get and List from it
// for callers that allow it.
func reader(client *clientv3.Client, id string) (c *curator.Curator, address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	replica := kv.NewReplica(kv.SpaceOf("inn"), lease.Boot().Now)
	c, err = curator.New(curator.Config{
		Elector:  elector.Config{Election: "inn", NodeID: id, Source: elector.Always(elector.Client(client))},
		Listener: listener,
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, server)
			return nil
		},
		Reads:   func(r grpc.ServiceRegistrar) { kvpb.RegisterKVServer(curator.Only(r, "Get", "List"), replica) },
		ReadAge: replica.Age,
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	followed, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		_ = replica.Follow(ctx, client, 20*time.Millisecond) // returns when ctx ends
	}()
	go func() {
		defer close(done)
		_ = c.Run(ctx) // the same
	}()
	return c, listener.Addr().String(), func() { cancel(); <-followed; <-done }
}

// A caller reads from the copy of the node that it is connected to. It allows no copy that is
// older than its own write, so it sees that write, whoever answers; and it is told who did.
func ExampleAllowLocalRead() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{Members: 1})
	check(err)
	defer etcd.Close()
	client, err := etcd.Dial()
	check(err)
	defer client.Close()
	anna, _, stopAnna := reader(client, "anna")
	defer stopAnna()
	until(ctx, anna, elector.Leading)
	bert, address, stopBert := reader(client, "bert")
	defer stopBert()
	until(ctx, bert, elector.Following)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer conn.Close()
	inn := kvpb.NewKVClient(conn)

	_, err = inn.Put(ctx, &kvpb.PutRequest{RequestId: "1", Key: "room 7", Value: []byte("taken")})
	check(err)
	written := time.Now() // bert has asked anna
	for {
		var header metadata.MD
		allowed := curator.AllowLocalRead(ctx, time.Since(written))
		item, err := inn.Get(allowed, &kvpb.GetRequest{Key: "room 7"}, grpc.Header(&header))
		check(err)
		read, ok := curator.ReadFrom(header)
		if !ok || string(item.GetValue()) != "taken" {
			log.Fatalf("%v, %q", header, item.GetValue())
		}
		if read.Local { // until bert's copy is from after the write, anna answers
			fmt.Printf("the copy of %s: %s\n", read.Node, item.GetValue())
			return
		}
	}
	// Output: the copy of bert: taken
}
