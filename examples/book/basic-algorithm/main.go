// Command basic-algorithm is the program of chapter 7: there are two candidates; one leads, writes
// and resigns; the other one is notified, proves that it may lead, and leads.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/lease"
)

func main() { wire.Main(run) }

// participant is one process of the election.
type participant struct {
	client    *wire.Client
	session   *lease.Session
	candidate *election.Candidate
}

// join opens a session and makes a candidate.
func join(ctx context.Context, name string) participant {
	client := wire.Connect(name)
	session := wire.Must(lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: time.Minute}}))
	candidate := wire.Must(election.New(election.Config{
		Election: "book", Session: session, KV: client, Watcher: client, Value: []byte(name),
		Options: election.Options{
			WatchCheck: -1, // no liveness checks of quiet watches, because their times vary
		},
	}))
	return participant{client, session, candidate}
}

// leave resigns, if there is anything to resign, and revokes the lease.
func (p participant) leave(ctx context.Context) {
	defer p.client.Hangup()
	wire.Check(p.candidate.Close(ctx))
	wire.Check(p.session.Close(ctx))
}

func run(ctx context.Context) {
	anna := join(ctx, "anna")
	first := wire.Must(anna.candidate.Campaign(ctx))
	wire.Check(anna.client.Watching(ctx, 1)) // her own key
	fmt.Println("anna is alone and leads with token", first.Token())

	bert := join(ctx, "bert")
	place := wire.Must(bert.candidate.Register(ctx))
	wire.Check(bert.client.Watching(ctx, 1))
	fmt.Printf("bert is number %d with token %d, and waits for anna: %t\n", place.Queue, place.Token, place.Predecessor == first.Key())
	won := make(chan *election.Leadership, 1)
	go func() { won <- wire.Must(bert.candidate.Await(ctx)) }()
	wire.Check(bert.client.Watching(ctx, 2)) // his predecessor's

	wire.Must(first.KV().Put(ctx, "book-state", "written by anna"))
	fmt.Println("anna writes through her guard, and resigns")
	wire.Check(first.Resign(ctx))
	second := <-won
	fmt.Println("bert leads with token", second.Token())

	_, err := first.KV().Put(ctx, "book-state", "written by anna, late")
	fmt.Println("anna's next write is refused on her own side:", errors.Is(err, eldest.ErrNotLeading))
	guard := first.Guard()
	guard.Alive = nil // as if she had been stopped during the write, after the check
	_, err = guard.KV(anna.client).Put(ctx, "book-state", "written by anna, late")
	fmt.Println("a write in flight is refused by etcd:", errors.Is(err, eldest.ErrDeposed))
	wire.Must(second.KV().Delete(ctx, "book-state"))
	bert.leave(ctx)
	anna.leave(ctx)
}
