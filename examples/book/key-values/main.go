// Command key-values is the program of chapter 2: what a revision counts, and what distinguishes a
// key from a deleted one of the same name.
package main

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("client")
	defer client.Hangup()
	// show prints the four numbers of each key below book/.
	show := func(what string) {
		resp := wire.Must(client.Get(ctx, "book/", clientv3.WithPrefix()))
		fmt.Printf("%s: the store is at revision %d\n", what, resp.Header.Revision)
		for _, kv := range resp.Kvs {
			fmt.Printf("    %-8s created at %d, modified at %d, version %d\n", kv.Key, kv.CreateRevision, kv.ModRevision, kv.Version)
		}
	}
	show("before anything")
	granted := wire.Must(client.Grant(ctx, 60))
	show("a lease is granted")
	wire.Must(client.Revoke(ctx, granted.ID))
	show("and revoked, with no keys on it")
	wire.Must(client.Put(ctx, "book/a", "1"))
	show("put a")
	wire.Must(client.Put(ctx, "book/a", "2"))
	show("put a again")
	wire.Must(client.Txn(ctx).Then(clientv3.OpPut("book/b", "1"), clientv3.OpPut("book/c", "1")).Commit())
	show("put b and c in one transaction")
	wire.Must(client.Txn(ctx).If(clientv3.Compare(clientv3.Version("book/a"), "=", 0)).Then(clientv3.OpPut("book/a", "3")).Commit())
	show("a compare that fails, and changes nothing")
	wire.Must(client.Delete(ctx, "book/a"))
	show("delete a")
	wire.Must(client.Delete(ctx, "book/a"))
	show("delete a, which does not exist")
	wire.Must(client.Put(ctx, "book/a", "2"))
	show("put a: the same key with another create revision")
	wire.Must(client.Delete(ctx, "book/", clientv3.WithPrefix()))
}
