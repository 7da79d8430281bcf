// Command keys-on-a-lease is the program of chapter 3: keys are deleted with their lease, all at
// one revision; a put without the lease detaches a key, and the key stays.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("client")
	defer client.Hangup()

	watched := client.Watch(ctx, "book/", clientv3.WithPrefix(), clientv3.WithFilterPut())
	wire.Check(client.Watching(ctx, 1))
	granted := wire.Must(client.Grant(ctx, 3))
	for _, key := range []string{"book/x", "book/y", "book/z"} {
		wire.Must(client.Put(ctx, key, "first", clientv3.WithLease(granted.ID)))
	}
	fmt.Printf("x, y and z are bound to a lease of %d seconds\n", granted.TTL)
	// A put with a new value and without the lease: the key is not bound to it any more.
	wire.Must(client.Put(ctx, "book/z", "second"))
	fmt.Println("z was put again without its lease")

	// The lease is not renewed. The server ends it in its own time, and deletes its keys.
	resp := wire.Must(wire.Next(ctx, watched))
	var gone []string
	for _, event := range resp.Events {
		gone = append(gone, fmt.Sprintf("%s at %d", event.Kv.Key, event.Kv.ModRevision))
	}
	slices.Sort(gone)
	fmt.Println("the lease has ended; deleted:", gone)
	left := wire.Must(client.Get(ctx, "book/", clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	for _, kv := range left.Kvs {
		fmt.Printf("%s still exists, and does not expire\n", kv.Key)
	}

	// A late request, which was in flight for longer than the lease, is refused.
	_, err := client.Put(ctx, "book/x", "late", clientv3.WithLease(granted.ID))
	fmt.Println("a late put is refused:", errors.Is(err, rpctypes.ErrLeaseNotFound))
	wire.Must(client.Delete(ctx, "book/z"))
	wire.Must(wire.Next(ctx, watched))
}
