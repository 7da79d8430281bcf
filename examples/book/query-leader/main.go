// Command query-leader is the program of chapter 9: who leads, asked once, and asked by
// somebody who stays and is told.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/observe"
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

func run(ctx context.Context) error {
	asker, err := wire.Connect("observer")
	if err != nil {
		return err
	}
	defer asker.Hangup()
	anna, err := wire.Connect("anna")
	if err != nil {
		return err
	}
	defer anna.Hangup()
	bert, err := wire.Connect("bert")
	if err != nil {
		return err
	}
	defer bert.Hangup()

	// One question: the oldest key of the range.
	ask := func() error {
		leader, err := observe.LeaderOf(ctx, asker, "book")
		if errors.Is(err, eldest.ErrNoLeader) {
			fmt.Println("asked: nobody leads")
			return nil
		}
		fmt.Printf("asked: %s leads with token %d\n", leader.Value, leader.Token)
		return err
	}
	if err := ask(); err != nil {
		return err
	}

	// Who wants to know of each change observes: a watch, a picture of the queue, and then
	// nothing but events.
	observer, err := observe.New(observe.Config{Election: "book", KV: asker, Watcher: asker, Recheck: -1})
	if err != nil {
		return err
	}
	defer observer.Close()
	states := observer.Subscribe()
	told := func() error {
		state, err := states.Next(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("told at revision %d: %v %q\n", state.Revision, state.Kind, state.Leader.Value)
		return nil
	}
	if err := told(); err != nil {
		return err
	}

	enter := func(client *wire.Client, value string) (e txn.Entry, token eldest.Token, err error) {
		granted, err := client.Grant(ctx, 60)
		if err != nil {
			return e, 0, err
		}
		e = txn.Entry{Election: "book", Lease: int64(granted.ID), Value: []byte(value)}
		place, err := txn.ByCreateRevision{}.Enter(ctx, client, e)
		return e, place.Token, err
	}
	hers, token, err := enter(anna, "anna")
	if err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	his, _, err := enter(bert, "bert") // behind anna: no news
	if err != nil {
		return err
	}
	hers.Value = []byte("anna, ready")
	if _, err := txn.Proclaim(ctx, anna, hers, token); err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	if err := ask(); err != nil {
		return err
	}
	queue, err := observe.Queue(ctx, asker, nil, "book")
	if err != nil {
		return err
	}
	for i, c := range queue {
		fmt.Printf("number %d in the queue: %s with token %d\n", i+1, c.Value, c.Token)
	}

	// Anna goes. Who comes next is known from the picture, without a question.
	if err := txn.Leave(ctx, anna, hers.Key(), token); err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	if _, err := bert.Revoke(ctx, clientv3.LeaseID(his.Lease)); err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	_, err = anna.Revoke(ctx, clientv3.LeaseID(hers.Lease))
	return err
}
