// Command query-leader is the program of chapter 9: the leader, read once, and observed with each
// change.
package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	asker := wire.Connect("observer")
	defer asker.Hangup()
	anna := wire.Connect("anna")
	defer anna.Hangup()
	bert := wire.Connect("bert")
	defer bert.Hangup()

	// One request: the oldest key of the range.
	ask := func() {
		leader, err := observe.LeaderOf(ctx, asker, "book")
		if errors.Is(err, eldest.ErrNoLeader) {
			fmt.Println("read: no candidate leads")
			return
		}
		wire.Check(err)
		fmt.Printf("read: %s leads with token %d\n", leader.Value, leader.Token)
	}
	ask()

	// A client that needs each change observes: a watch, a view of the queue, and then only events.
	observer := wire.Must(observe.New(observe.Config{Election: "book", KV: asker, Watcher: asker, Options: observe.Options{WatchCheck: -1}}))
	defer observer.Close()
	states := observer.Subscribe()
	told := func() {
		state := wire.Must(states.Next(ctx))
		fmt.Printf("notified at revision %d: %v %q\n", state.Revision, state.Kind, state.Leader.Value)
	}
	told()

	enter := func(client *wire.Client, value string) (e txn.Entry, token eldest.Token) {
		granted := wire.Must(client.Grant(ctx, 60))
		e = txn.Entry{Election: "book", Lease: int64(granted.ID), Value: []byte(value)}
		return e, wire.Must(txn.ByCreateRevision{}.Enter(ctx, client, e)).Token
	}
	hers, token := enter(anna, "anna")
	told()
	his, _ := enter(bert, "bert") // behind anna: no new state
	hers.Value = []byte("anna, ready")
	wire.Must(txn.Proclaim(ctx, anna, hers, token))
	told()
	ask()
	queue := wire.Must(observe.Queue(ctx, asker, nil, "book"))
	for i, c := range queue {
		fmt.Printf("number %d in the queue: %s with token %d\n", i+1, c.Value, c.Token)
	}

	// Anna leaves. The next leader is known from the view, without a request.
	wire.Check(txn.Leave(ctx, anna, hers.Key(), token))
	told()
	wire.Must(bert.Revoke(ctx, clientv3.LeaseID(his.Lease)))
	told()
	wire.Must(anna.Revoke(ctx, clientv3.LeaseID(hers.Lease)))
}
