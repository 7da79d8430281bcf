//go:build linux

package keeper_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// A program whose leases are revoked as soon as it has died. Its main begins with
// keeper.Serve(dial).
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = etcd.Close() }()
	where := []byte(strings.Join(etcd.Endpoints(), ",")) // as dial understands it
	client, err := dial(ctx, where)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	k, err := keeper.Start(ctx, where)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = k.Close(ctx) }()
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: 30 * time.Second, Keeper: k}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Campaign and lead with the session. If this process is killed now, nobody waits for 30 s.
	fmt.Println(session.Close(ctx), k.Err())
	// Output: <nil> <nil>
}
