// Command thundering-herds is the program of chapter 8: four stand in a queue, each watches
// the one before, and a crowd beside them watches everything. The steps of package election
// are done here by hand, so that each event can be counted.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/txn"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

// waiter is a candidate that has a place in the queue.
type waiter struct {
	name    string
	client  *wire.Client
	entry   txn.Entry
	place   txn.Place
	watched clientv3.WatchChan
	told    int
}

// enter puts a candidate at the end of the queue.
func enter(ctx context.Context, name string) (*waiter, error) {
	client, err := wire.Connect(name)
	if err != nil {
		return nil, err
	}
	granted, err := client.Grant(ctx, 60)
	if err != nil {
		return nil, err
	}
	w := &waiter{name: name, client: client, entry: txn.Entry{Election: "book", Lease: int64(granted.ID), Value: []byte(name)}}
	w.place, err = txn.ByCreateRevision{}.Enter(ctx, client, w.entry)
	return w, err
}

// wait watches the predecessor, and looks whether it is still there.
func (w *waiter) wait(ctx context.Context) error {
	key := w.place.Ahead[0].Key
	w.watched = w.client.Watch(ctx, key, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	if resp := <-w.watched; resp.Err() != nil || !resp.Created {
		return errors.Join(errors.New("the watch was not created"), resp.Err())
	}
	look, err := w.client.Get(ctx, key, clientv3.WithKeysOnly())
	if err == nil && look.Count == 0 {
		err = errors.New("the predecessor is gone already")
	}
	return err
}

// next is told of the predecessor's end, and asks who is older now.
func (w *waiter) next(ctx context.Context) error {
	resp, ok := <-w.watched
	if !ok || resp.Err() != nil {
		return errors.Join(errors.New("the watch ended"), resp.Err())
	}
	w.told += len(resp.Events)
	w.place.Ahead = w.place.Ahead[1:]
	place, err := txn.ByCreateRevision{}.Ahead(ctx, w.client, w.entry, w.place, resp.Events[0].Kv.ModRevision)
	w.place = place
	return err
}

// leave ends a candidacy, and with the connection whatever was watched.
func (w *waiter) leave(ctx context.Context) error {
	defer w.client.Hangup()
	if err := txn.Leave(ctx, w.client, w.entry.Key(), w.place.Token); err != nil {
		return err
	}
	_, err := w.client.Revoke(ctx, clientv3.LeaseID(w.entry.Lease))
	return err
}

func run(ctx context.Context) error {
	line := map[string]*waiter{}
	for _, name := range []string{"anna", "bert", "carl", "dora"} {
		w, err := enter(ctx, name)
		if err != nil {
			return err
		}
		defer w.client.Hangup()
		line[name] = w
		fmt.Printf("%s entered, and %d stand before\n", name, len(w.place.Ahead))
		if w.place.First() {
			continue
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	// What a herd does: everybody watches the whole range.
	crowd, err := wire.Connect("crowd")
	if err != nil {
		return err
	}
	defer crowd.Hangup()
	var herd [3]clientv3.WatchChan
	for i := range herd {
		herd[i] = crowd.Watch(ctx, "book/", clientv3.WithPrefix(), clientv3.WithFilterPut())
		if err := crowd.Watching(ctx, i+1); err != nil {
			return err
		}
	}
	heard := 0
	listen := func() {
		for _, watched := range herd {
			resp := <-watched
			heard += len(resp.Events)
		}
	}

	// Carl leaves the middle of the queue. Dora alone is told, and it is not her turn.
	if err := line["carl"].leave(ctx); err != nil {
		return err
	}
	listen()
	if err := line["dora"].next(ctx); err != nil {
		return err
	}
	fmt.Println("carl left; dora may lead:", line["dora"].place.First())
	if err := line["dora"].wait(ctx); err != nil {
		return err
	}

	// Then the leader leaves. Bert alone is told, and proves his win with one read.
	if err := line["anna"].leave(ctx); err != nil {
		return err
	}
	listen()
	if err := line["bert"].next(ctx); err != nil {
		return err
	}
	fmt.Println("anna left; bert may lead:", line["bert"].place.First())
	fmt.Printf("two departures: bert was told of %d event, dora of %d, the crowd of three of %d\n", line["bert"].told, line["dora"].told, heard)

	for _, name := range []string{"dora", "bert"} {
		if err := line[name].leave(ctx); err != nil {
			return err
		}
		listen()
	}
	return nil
}
