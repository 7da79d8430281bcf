// Command thundering-herds is the program of chapter 8: four candidates are in a queue, each
// watches the one before it, and a crowd watches everything. The steps of package election are done
// here one by one, so that each event can be counted.
package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/txn"
)

func main() { wire.Main(run) }

// waiter is a candidate with a position in the queue.
type waiter struct {
	client  *wire.Client
	entry   txn.Entry
	place   txn.Position
	watched clientv3.WatchChan
	told    int
}

// enter puts a candidate at the end of the queue.
func enter(ctx context.Context, name string) *waiter {
	client := wire.Connect(name)
	granted := wire.Must(client.Grant(ctx, 60))
	entry := txn.Entry{Election: "book", Lease: int64(granted.ID), Value: []byte(name)}
	return &waiter{client: client, entry: entry, place: wire.Must(txn.ByCreateRevision{}.Enter(ctx, client, entry))}
}

// wait watches the predecessor, and checks that it still exists.
func (w *waiter) wait(ctx context.Context) {
	key := w.place.Ahead[0].Key
	w.watched = w.client.Watch(ctx, key, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	wire.Must(wire.Next(ctx, w.watched)) // it is in place
	if look := wire.Must(w.client.Get(ctx, key, clientv3.WithKeysOnly())); look.Count == 0 {
		wire.Check(errors.New("the predecessor was deleted already"))
	}
}

// next receives the predecessor's end, and reads which candidates are older now.
func (w *waiter) next(ctx context.Context) {
	resp := wire.Must(wire.Next(ctx, w.watched))
	w.told += len(resp.Events)
	w.place.Ahead = w.place.Ahead[1:]
	w.place = wire.Must(txn.ByCreateRevision{}.Ahead(ctx, w.client, w.entry, w.place, resp.Events[0].Kv.ModRevision))
}

// leave ends a candidacy, and all watches with the connection.
func (w *waiter) leave(ctx context.Context) {
	defer w.client.Hangup()
	wire.Check(txn.Leave(ctx, w.client, w.entry.Key(), w.place.Token))
	wire.Must(w.client.Revoke(ctx, clientv3.LeaseID(w.entry.Lease)))
}

func run(ctx context.Context) {
	line := map[string]*waiter{}
	for _, name := range []string{"anna", "bert", "carl", "dora"} {
		w := enter(ctx, name)
		defer w.client.Hangup()
		line[name] = w
		fmt.Printf("%s entered, candidates ahead: %d\n", name, len(w.place.Ahead))
		if w.place.First() {
			continue
		}
		w.wait(ctx)
	}
	// A herd: each client watches the whole range.
	crowd := wire.Connect("crowd")
	defer crowd.Hangup()
	var herd [3]clientv3.WatchChan
	for i := range herd {
		herd[i] = crowd.Watch(ctx, "book/", clientv3.WithPrefix(), clientv3.WithFilterPut())
		wire.Check(crowd.Watching(ctx, i+1))
	}
	heard := 0
	listen := func() {
		for _, watched := range herd {
			resp := <-watched
			heard += len(resp.Events)
		}
	}

	// Carl leaves the middle of the queue. Only dora is notified, and she does not lead yet.
	line["carl"].leave(ctx)
	listen()
	line["dora"].next(ctx)
	fmt.Println("carl left; dora may lead:", line["dora"].place.First())
	line["dora"].wait(ctx)

	// Then the leader leaves. Only bert is notified, and proves his win with one read.
	line["anna"].leave(ctx)
	listen()
	line["bert"].next(ctx)
	fmt.Println("anna left; bert may lead:", line["bert"].place.First())
	fmt.Printf("two departures: bert received %d event, dora %d, the herd of three %d\n", line["bert"].told, line["dora"].told, heard)

	for _, name := range []string{"dora", "bert"} {
		line[name].leave(ctx)
		listen()
	}
}
