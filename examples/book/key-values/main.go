// Command key-values is the program of chapter 2: what a revision counts, and what tells
// two lives of one key apart.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

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
	// show prints the four numbers of each key below book/.
	show := func(what string) error {
		resp, err := client.Get(ctx, "book/", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		fmt.Printf("%s: the store is at revision %d\n", what, resp.Header.Revision)
		for _, kv := range resp.Kvs {
			fmt.Printf("    %-8s created at %d, modified at %d, version %d\n", kv.Key, kv.CreateRevision, kv.ModRevision, kv.Version)
		}
		return nil
	}
	var lease clientv3.LeaseID
	steps := []struct {
		what string
		do   func() error
	}{
		{"before anything", func() error { return nil }},
		{"a lease is granted", func() error {
			granted, err := client.Grant(ctx, 60)
			if err == nil {
				lease = granted.ID
			}
			return err
		}},
		{"and revoked, with no keys on it", func() error { _, err := client.Revoke(ctx, lease); return err }},
		{"put a", func() error { _, err := client.Put(ctx, "book/a", "1"); return err }},
		{"put a again", func() error { _, err := client.Put(ctx, "book/a", "2"); return err }},
		{"put b and c in one transaction", func() error {
			_, err := client.Txn(ctx).Then(clientv3.OpPut("book/b", "1"), clientv3.OpPut("book/c", "1")).Commit()
			return err
		}},
		{"a compare that fails, and changes nothing", func() error {
			_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Version("book/a"), "=", 0)).Then(clientv3.OpPut("book/a", "3")).Commit()
			return err
		}},
		{"delete a", func() error { _, err := client.Delete(ctx, "book/a"); return err }},
		{"delete a, which is not there", func() error { _, err := client.Delete(ctx, "book/a"); return err }},
		{"put a: another life of the same key", func() error { _, err := client.Put(ctx, "book/a", "2"); return err }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return err
		}
		if err := show(step.what); err != nil {
			return err
		}
	}
	_, err = client.Delete(ctx, "book/", clientv3.WithPrefix())
	return err
}
