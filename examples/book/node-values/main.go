// Command node-values is the program of chapter 10: how a candidate describes itself, how it
// changes that, and what others do with a value that they cannot decode.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("candidate")
	defer client.Hangup()
	operator := wire.Connect("operator")
	defer operator.Hangup()
	session := wire.Must(lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: time.Minute}}))
	candidate := wire.Must(election.New(election.Config{
		Election: "book", Session: session, KV: client, Watcher: client,
		Value:   []byte{0x00, 0xff, 'a'}, // any bytes
		Options: election.Options{WatchCheck: -1},
	}))
	// read prints the leader's value as others decode it.
	read := func() {
		leader := wire.Must(observe.LeaderOf(ctx, operator, "book"))
		node, err := identity.Protobuf{}.Decode(leader.Value)
		if errors.Is(err, eldest.ErrForeignValue) {
			fmt.Printf("a candidate leads with token %d and the value %q, which has no node ID\n", leader.Token, leader.Value)
			return
		}
		wire.Check(err)
		fmt.Printf("%s leads with token %d at %s, and has %v\n", node.NodeID, leader.Token, node.Address, node.TTL)
	}

	leadership := wire.Must(candidate.Campaign(ctx))
	wire.Check(client.Watching(ctx, 1))
	read()

	// A value that others can use: the node's ID, its address, and its TTL.
	value := wire.Must(identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Address: "10.0.0.1:7001", TTL: session.TTL()}))
	wire.Check(leadership.Proclaim(ctx, value))
	read()

	// An operator puts another value there by hand, and thereby detaches the key from its lease.
	wire.Must(operator.Put(ctx, leadership.Key(), "edited by hand"))
	<-leadership.Done()
	fmt.Println("after the edit the tenure has ended as deposed:", errors.Is(leadership.Err(), eldest.ErrDeposed))
	fmt.Println("proclaiming is refused:", errors.Is(leadership.Proclaim(ctx, value), eldest.ErrNotLeading))
	wire.Check(candidate.Close(ctx)) // which removes the key
	_, err := observe.LeaderOf(ctx, operator, "book")
	fmt.Println("no candidate leads:", errors.Is(err, eldest.ErrNoLeader))
	wire.Check(session.Close(ctx))
}
