// Command node-values is the program of chapter 10: what a candidate tells of itself, how
// it changes that, and what others do with a value that they cannot read.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
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
	client, err := wire.Connect("candidate")
	if err != nil {
		return err
	}
	defer client.Hangup()
	operator, err := wire.Connect("operator")
	if err != nil {
		return err
	}
	defer operator.Hangup()
	session, err := lease.Open(ctx, lease.Config{Lease: client, TTL: time.Minute})
	if err != nil {
		return err
	}
	candidate, err := election.New(election.Config{
		Election: "book", Session: session, KV: client, Watcher: client, Recheck: -1,
		Value: []byte{0x00, 0xff, 'a'}, // any bytes
	})
	if err != nil {
		return err
	}
	// read is what others make of the leader's value.
	read := func() error {
		leader, err := observe.LeaderOf(ctx, operator, "book")
		if err != nil {
			return err
		}
		node, err := identity.Protobuf{}.Decode(leader.Value)
		if errors.Is(err, eldest.ErrForeignValue) {
			fmt.Printf("somebody leads with token %d, and says %q, which names no node\n", leader.Token, leader.Value)
			return nil
		}
		fmt.Printf("%s leads with token %d at %s, and has %v\n", node.NodeID, leader.Token, node.Address, node.TTL)
		return err
	}

	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		return err
	}
	if err := client.Watching(ctx, 1); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}

	// A value that others can use: who, where, and for how long after a silence.
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Address: "10.0.0.1:7001", TTL: session.TTL()})
	if err != nil {
		return err
	}
	if err := leadership.Proclaim(ctx, value); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}

	// Somebody puts another value there by hand, and with it unties the key from its lease.
	if _, err := operator.Put(ctx, leadership.Key(), "edited by hand"); err != nil {
		return err
	}
	<-leadership.Done()
	fmt.Println("after the edit the tenure has ended as deposed:", errors.Is(leadership.Err(), eldest.ErrDeposed))
	fmt.Println("proclaiming is refused:", errors.Is(leadership.Proclaim(ctx, value), eldest.ErrNotLeading))
	if err := candidate.Close(ctx); err != nil { // which removes the key
		return err
	}
	_, err = observe.LeaderOf(ctx, operator, "book")
	fmt.Println("nobody leads:", errors.Is(err, eldest.ErrNoLeader))
	return session.Close(ctx)
}
