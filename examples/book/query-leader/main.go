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
	others, err := wire.Connect("candidates")
	if err != nil {
		return err
	}
	defer others.Hangup()

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

	anna, bert := txn.Entry{Election: "book", Value: []byte("anna")}, txn.Entry{Election: "book", Value: []byte("bert")}
	enter := func(e *txn.Entry) (token eldest.Token, err error) {
		granted, err := others.Grant(ctx, 60)
		if err != nil {
			return 0, err
		}
		e.Lease = int64(granted.ID)
		place, err := txn.ByCreateRevision{}.Enter(ctx, others, *e)
		return place.Token, err
	}
	first, err := enter(&anna)
	if err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	if _, err := enter(&bert); err != nil { // behind anna: no news
		return err
	}
	anna.Value = []byte("anna, ready")
	if _, err := txn.Proclaim(ctx, others, anna, first); err != nil {
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
	if err := txn.Leave(ctx, others, anna.Key(), first); err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	if _, err := others.Revoke(ctx, clientv3.LeaseID(bert.Lease)); err != nil {
		return err
	}
	if err := told(); err != nil {
		return err
	}
	_, err = others.Revoke(ctx, clientv3.LeaseID(anna.Lease))
	return err
}
