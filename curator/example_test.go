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

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// node runs one node of the service until stop, which returns when all of it is over. A
// program has its client from clientv3.New and its listener at an address of its own.
func node(client *clientv3.Client, id string) (c *curator.Curator, address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	c, err = curator.New(curator.Config{
		Elector:  elector.Config{Election: "shop", NodeID: id, Source: elector.Always(elector.Client(client))},
		Listener: listener,
		// For each tenure a service of its own, that writes and reads through the tenure's guard.
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, server)
			return nil
		},
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx) // returns when ctx ends
	}()
	return c, listener.Addr().String(), func() { cancel(); <-done }
}

// Three nodes of a key-value service. A client asks the third one, all the time, and need
// not know who leads: the leader answers, whoever that is.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{Members: 3})
	check(err)
	defer etcd.Close()
	client, err := etcd.Dial()
	check(err)
	defer client.Close()

	anna, _, stopAnna := node(client, "anna")
	until(ctx, anna, elector.Leading)
	bert, _, stopBert := node(client, "bert")
	until(ctx, bert, elector.Following) // so that bert is the next one
	cleo, address, stopCleo := node(client, "cleo")
	defer stopCleo()
	defer stopBert()

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer conn.Close()
	shop := kvpb.NewKVClient(conn)

	put, err := shop.Put(ctx, &kvpb.PutRequest{RequestId: "1", Key: "basket", Value: []byte("tea")})
	check(err)
	leader, _ := until(ctx, cleo, elector.Following).Leader()
	fmt.Printf("cleo asked %s: %t\n", leader.NodeID, int64(leader.Token) == put.GetReceipt().GetToken())

	stopAnna() // gives up leadership first
	added, err := shop.Append(ctx, &kvpb.AppendRequest{RequestId: "2", Key: "basket", Value: []byte(" and milk")})
	check(err)
	leader, _ = until(ctx, cleo, elector.Following).Leader()
	fmt.Printf("cleo asked %s: %t\n", leader.NodeID, int64(leader.Token) == added.GetReceipt().GetToken())

	item, err := shop.Get(ctx, &kvpb.GetRequest{Key: "basket"})
	check(err)
	fmt.Printf("basket: %s\n", item.GetValue())

	// What happened, as etcd has it, for everybody to see.
	trail, err := kv.SpaceOf("shop").ReadTrail(ctx, client)
	check(err)
	tenure := 0
	for _, record := range trail {
		if record.GetMethod() == kvpb.Record_METHOD_OPEN {
			tenure++
			continue
		}
		fmt.Printf("tenure %d: %s %q\n", tenure, record.GetKey(), record.GetValue())
	}
	// Output:
	// cleo asked anna: true
	// cleo asked bert: true
	// basket: tea and milk
	// tenure 1: basket "tea"
	// tenure 2: basket " and milk"
}

// until waits until a node has a role.
func until(ctx context.Context, c *curator.Curator, role elector.Role) elector.Status {
	status, err := c.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() == role })
	check(err)
	return status
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
