package resolver_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/resolver"
)

// A client that cannot reach etcd has the addresses of two nodes of a service. It is connected to
// the one that leads and, when that one stops, to the other.
func ExampleFromNodes() {
	ctx := context.Background()
	cluster, err := etcdtest.New(ctx, etcdtest.Config{})
	check(err)
	defer cluster.Close()
	etcd, err := cluster.Dial()
	check(err)
	defer etcd.Close()

	node := func(id string) (address string, stop func()) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		c, err := curator.New(curator.Config{
			Elector:   elector.Config{Election: "notes", NodeID: id, Source: elector.Always(elector.Client(etcd))},
			Listeners: []curator.Listener{{Listener: listener}},
			Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
				server, err := kv.New(ctx, l)
				if err != nil {
					return err
				}
				kvpb.RegisterKVServer(r, server)
				fmt.Println(id, "leads")
				return nil
			},
		})
		check(err)
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { _ = c.Run(ctx); close(done) }()
		_, err = c.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() != elector.Unknown })
		check(err)
		return listener.Addr().String(), func() { cancel(); <-done }
	}
	anna, stopAnna := node("anna")
	bert, stopBert := node("bert")
	defer stopBert()

	builder, err := resolver.FromNodes(resolver.NodesConfig{Addresses: []string{anna, bert}})
	check(err)
	conn, err := grpc.NewClient(resolver.Target("notes"), grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer conn.Close()
	notes := kvpb.NewKVClient(conn)

	_, err = notes.Put(ctx, &kvpb.PutRequest{RequestId: "1", Key: "milk", Value: []byte("two")}, grpc.WaitForReady(true))
	check(err)
	fmt.Println("written")
	stopAnna()
	// Reading can be tried again whatever became of the attempt before.
	for {
		item, err := notes.Get(ctx, &kvpb.GetRequest{Key: "milk"}, grpc.WaitForReady(true))
		if err == nil {
			fmt.Printf("read: %s\n", item.GetValue())
			return
		}
	}
	// Output:
	// anna leads
	// written
	// bert leads
	// read: two
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
