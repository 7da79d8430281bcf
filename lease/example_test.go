package lease_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// A session keeps a lease alive. Keys that are bound to the lease are deleted with it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster, err := etcdtest.New(ctx, etcdtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close() }()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         cluster.Endpoints(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: 5 * time.Second}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted:", session.TTL())
	if _, err := client.Put(ctx, "greeting", "hello", clientv3.WithLease(session.ID())); err != nil {
		fmt.Println(err)
		return
	}

	// Before a step that must not outlive the lease: is there time for it?
	fmt.Println("a second:", session.Holds(time.Second))
	fmt.Println("a minute:", session.Holds(time.Minute))

	if err := session.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}
	left, err := client.Get(ctx, "greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("keys left:", left.Count)
	fmt.Println(session.Holds(0), context.Cause(session.Context()) != nil)
	// Output:
	// granted: 5s
	// a second: true
	// a minute: false
	// keys left: 0
	// false true
}
