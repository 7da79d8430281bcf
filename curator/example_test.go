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

// node runs one node of the service until stop, which returns when all of it has ended. A program
// gets its client from clientv3.New, and listens on its own address.
func node(client *clientv3.Client, id string, change ...func(*curator.Config)) (c *curator.Curator, address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	cfg := curator.Config{
		Elector:   elector.Config{Election: "shop", NodeID: id, Source: elector.Always(elector.Client(client))},
		Listeners: []curator.Listener{{Listener: listener}},
		// A service for each tenure, which writes and reads through the tenure's guard.
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, server)
			return nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err = curator.New(cfg)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx) // returns when ctx ends
	}()
	return c, listener.Addr().String(), func() { cancel(); <-done }
}

// Three nodes of a key-value service. A client sends all its requests to the third one, and need
// not know which node leads: the leader answers.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := startEtcd(ctx, 3)
	defer stop()
	anna, _, stopAnna := node(client, "anna")
	until(ctx, anna, elector.Leading)
	bert, _, stopBert := node(client, "bert")
	until(ctx, bert, elector.Following) // so that bert is the next one
	cleo, address, stopCleo := node(client, "cleo")
	defer stopCleo()
	defer stopBert()

	shop, hangUp := shopAt(address)
	defer hangUp()
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

	// What happened, as it is recorded in etcd. Every client can read it.
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

// A caller reads from the copy of the node that it is connected to. It allows no copy that is older
// than its own write, so it sees that write, whichever node answers; the header names that node.
func ExampleAllowLocalRead() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop := startEtcd(ctx, 1)
	defer stop()
	anna, _, stopAnna := node(client, "anna")
	defer stopAnna()
	until(ctx, anna, elector.Leading)

	replica := kv.NewReplica(kv.SpaceOf("shop"), lease.Boot().Now)
	following, unfollow := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		_ = replica.Follow(following, client, 20*time.Millisecond) // returns when its context ends
	}()
	defer func() { unfollow(); <-followed }()
	bert, address, stopBert := node(client, "bert", func(cfg *curator.Config) {
		cfg.Reads = func(r grpc.ServiceRegistrar) { kvpb.RegisterKVServer(curator.Only(r, "Get", "List"), replica) }
		cfg.ReadAge = replica.Age
	})
	defer stopBert()
	until(ctx, bert, elector.Following)
	shop, hangUp := shopAt(address)
	defer hangUp()

	_, err := shop.Put(ctx, &kvpb.PutRequest{RequestId: "1", Key: "basket", Value: []byte("tea")})
	check(err)
	written := time.Now() // bert has forwarded the call to anna
	for {
		var header metadata.MD
		allowed := curator.AllowLocalRead(ctx, time.Since(written))
		item, err := shop.Get(allowed, &kvpb.GetRequest{Key: "basket"}, grpc.Header(&header))
		check(err)
		read, ok := curator.ReadFrom(header)
		if !ok || string(item.GetValue()) != "tea" {
			log.Fatalf("%v, %q", header, item.GetValue())
		}
		if read.Local { // until bert's copy is from after the write, anna answers
			fmt.Printf("the copy of %s: %s\n", read.Node, item.GetValue())
			return
		}
	}
	// Output: the copy of bert: tea
}

// startEtcd starts an etcd with so many members. stop ends it, and the client.
func startEtcd(ctx context.Context, members int) (client *clientv3.Client, stop func()) {
	etcd, err := etcdtest.New(ctx, etcdtest.Config{Members: members})
	check(err)
	client, err = etcd.Dial()
	check(err)
	return client, func() {
		_ = client.Close()
		_ = etcd.Close()
	}
}

// shopAt connects to a node.
func shopAt(address string) (shop kvpb.KVClient, hangUp func()) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	return kvpb.NewKVClient(conn), func() { _ = conn.Close() }
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
