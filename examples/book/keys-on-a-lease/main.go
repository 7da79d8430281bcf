// Command keys-on-a-lease is the program of chapter 3: keys go with their lease, all at
// one revision; a put without the lease unties a key, and it stays.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := wire.Connect("client")
	if err != nil {
		return err
	}
	defer client.Hangup()

	watched := client.Watch(ctx, "book/", clientv3.WithPrefix(), clientv3.WithFilterPut())
	if err := client.Watching(ctx, 1); err != nil {
		return err
	}
	granted, err := client.Grant(ctx, 3)
	if err != nil {
		return err
	}
	for _, key := range []string{"book/x", "book/y", "book/z"} {
		if _, err := client.Put(ctx, key, "first", clientv3.WithLease(granted.ID)); err != nil {
			return err
		}
	}
	fmt.Printf("x, y and z are bound to a lease of %d seconds\n", granted.TTL)
	// A new value, and nothing said of the lease: the key is not bound to it any more.
	if _, err := client.Put(ctx, "book/z", "second"); err != nil {
		return err
	}
	fmt.Println("z was put again without its lease")

	// Nobody renews. The server ends the lease in its own time, and deletes what is bound to it.
	resp, err := next(ctx, watched)
	if err != nil {
		return err
	}
	var gone []string
	for _, event := range resp.Events {
		gone = append(gone, fmt.Sprintf("%s at %d", event.Kv.Key, event.Kv.ModRevision))
	}
	slices.Sort(gone)
	fmt.Println("the lease has ended; deleted:", gone)
	left, err := client.Get(ctx, "book/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range left.Kvs {
		fmt.Printf("%s is still there, and will be for ever\n", kv.Key)
	}

	// Who comes late, with a request that was under way for longer than the lease, is refused.
	_, err = client.Put(ctx, "book/x", "late", clientv3.WithLease(granted.ID))
	fmt.Println("a late put is refused:", errors.Is(err, rpctypes.ErrLeaseNotFound))
	if _, err := client.Delete(ctx, "book/z"); err != nil {
		return err
	}
	_, err = next(ctx, watched)
	return err
}

// next returns the next message of a watch; a watch that ended is an error.
func next(ctx context.Context, watched clientv3.WatchChan) (clientv3.WatchResponse, error) {
	select {
	case resp, ok := <-watched:
		if !ok {
			return resp, errors.New("the watch ended without a word")
		}
		return resp, resp.Err()
	case <-ctx.Done():
		return clientv3.WatchResponse{}, ctx.Err()
	}
}
