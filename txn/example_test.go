package txn_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// Two candidates enter the queue by hand, and the first one writes through its guard, before and
// after its key was deleted.
func Example() {
	ctx := context.Background()
	cli, stop := etcdtest.ForExample()
	defer stop()

	enter := func(value string) (txn.Entry, txn.Position) {
		lease, err := cli.Grant(ctx, 60)
		if err != nil {
			log.Fatal(err)
		}
		entry := txn.Entry{Election: "reports", Lease: int64(lease.ID), Value: []byte(value)}
		place, err := txn.ByCreateRevision{}.Enter(ctx, cli, entry)
		if err != nil {
			log.Fatal(err)
		}
		return entry, place
	}
	anna, first := enter("anna")
	bert, second := enter("bert")
	fmt.Println("anna is first:", first.First())
	fmt.Println("bert waits for anna:", second.Ahead[0].Key == anna.Key())

	guard := txn.Guard{Election: "reports", Key: anna.Key(), Token: first.Token}
	_, err := guard.Txn(ctx, cli).Then(clientv3.OpPut("report", "by anna")).Commit()
	fmt.Println("anna writes:", err)

	if err := txn.Leave(ctx, cli, anna.Key(), first.Token); err != nil {
		log.Fatal(err)
	}
	_, err = guard.Txn(ctx, cli).Then(clientv3.OpPut("report", "too late")).Commit()
	var refused *txn.GuardError
	fmt.Println("anna writes after that:", errors.As(err, &refused), refused.Found)
	next, err := txn.ByCreateRevision{}.Ahead(ctx, cli, bert, second, 0)
	fmt.Println("bert is first:", next.First(), err)
	// Output:
	// anna is first: true
	// bert waits for anna: true
	// anna writes: <nil>
	// anna writes after that: true 0
	// bert is first: true <nil>
}
