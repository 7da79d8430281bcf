// Command test-and-set is the program of chapter 4: compare and change are one step, so that a
// request may be sent twice, and a former leader changes nothing.
package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/txn"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("client")
	defer client.Hangup()
	granted := wire.Must(client.Grant(ctx, 60))
	own := txn.Entry{Election: "book", Lease: int64(granted.ID), Value: []byte("anna")}

	// Enter the queue. If the reply is lost, the outcome is unknown, and the request is sent again.
	// The second request finds the key and changes nothing.
	var token eldest.Token
	for range 2 {
		found := wire.Must(txn.ByCreateRevision{}.Enter(ctx, client, own))
		fmt.Printf("entered: token %d, the key existed already: %t\n", found.Token, found.Adopted)
		token = found.Token
	}

	// A write of the leader: its whole transaction is guarded by the compare of its token.
	guard := txn.Guard{Election: "book", Key: own.Key(), Token: token}
	write := func(wanted, value string) {
		resp, err := guard.Txn(ctx, client).
			If(clientv3.Compare(clientv3.Value("book-state"), "=", wanted)).
			Then(clientv3.OpPut("book-state", value)).
			Commit()
		switch {
		case errors.Is(err, eldest.ErrDeposed):
			fmt.Printf("write %q: refused, the tenure is over\n", value)
		case err != nil:
			fmt.Printf("write %q: %v\n", value, err)
		case !resp.Succeeded:
			fmt.Printf("write %q: in the tenure, but book-state is not %q\n", value, wanted)
		default:
			fmt.Printf("write %q: done\n", value)
		}
	}
	wire.Must(client.Put(ctx, "book-state", "new"))
	write("new", "one")
	write("new", "two")

	// The same process leaves and enters again, with the same lease: the same key and the same
	// value, but another create revision. Writes with the old guard are refused.
	wire.Check(txn.Leave(ctx, client, own.Key(), token))
	again := wire.Must(txn.ByCreateRevision{}.Enter(ctx, client, own))
	fmt.Printf("left and entered again: token %d\n", again.Token)
	write("one", "three")
	wire.Must(client.Delete(ctx, "book-state"))
	wire.Must(client.Revoke(ctx, granted.ID))
}
