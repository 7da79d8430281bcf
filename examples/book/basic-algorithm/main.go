// Command basic-algorithm is the program of chapter 7: two candidates stand; one leads,
// writes and resigns; the other one is told, proves that it may lead, and leads.
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
	"github.com/eldest-io/eldest/lease"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

// participant is what each process has one of.
type participant struct {
	client    *wire.Client
	session   *lease.Session
	candidate *election.Candidate
}

// join has the lease granted.
func join(ctx context.Context, name string) (p participant, err error) {
	if p.client, err = wire.Connect(name); err != nil {
		return p, err
	}
	if p.session, err = lease.Open(ctx, lease.Config{Lease: p.client, TTL: time.Minute}); err != nil {
		return p, err
	}
	p.candidate, err = election.New(election.Config{
		Election: "book", Session: p.session, KV: p.client, Watcher: p.client, Value: []byte(name),
		Recheck: -1, // no second looks at quiet watches, which would come when they come
	})
	return p, err
}

// leave resigns, if there is anything to resign, and revokes the lease.
func (p participant) leave(ctx context.Context) error {
	defer p.client.Hangup()
	if err := p.candidate.Close(ctx); err != nil {
		return err
	}
	return p.session.Close(ctx)
}

func run(ctx context.Context) error {
	anna, err := join(ctx, "anna")
	if err != nil {
		return err
	}
	first, err := anna.candidate.Campaign(ctx)
	if err != nil {
		return err
	}
	if err := anna.client.Watching(ctx, 1); err != nil { // her own key
		return err
	}
	fmt.Println("anna is alone and leads with token", first.Token())

	bert, err := join(ctx, "bert")
	if err != nil {
		return err
	}
	place, err := bert.candidate.Register(ctx)
	if err != nil {
		return err
	}
	if err := bert.client.Watching(ctx, 1); err != nil {
		return err
	}
	fmt.Printf("bert is number %d with token %d, and waits for anna: %t\n", place.Queue, place.Token, place.Predecessor == first.Key())
	won := make(chan *election.Leadership, 1)
	go func() {
		leadership, err := bert.candidate.Await(ctx)
		if err != nil {
			log.Fatal(err)
		}
		won <- leadership
	}()
	if err := bert.client.Watching(ctx, 2); err != nil { // his predecessor's
		return err
	}
	if err := bert.client.Looked(ctx, 1); err != nil { // whether she is still there
		return err
	}

	if _, err := first.KV().Put(ctx, "book-state", "written by anna"); err != nil {
		return err
	}
	fmt.Println("anna writes behind her guard, and resigns")
	if err := first.Resign(ctx); err != nil {
		return err
	}
	second := <-won
	fmt.Println("bert leads with token", second.Token())

	_, err = first.KV().Put(ctx, "book-state", "written by anna, late")
	fmt.Println("anna's next write is refused on her own side:", errors.Is(err, eldest.ErrNotLeading))
	guard := first.Guard()
	guard.Alive = nil // as if she had been stopped in the middle of it, and had not looked
	_, err = guard.KV(anna.client).Put(ctx, "book-state", "written by anna, late")
	fmt.Println("a write that was under way is refused by etcd:", errors.Is(err, eldest.ErrDeposed))
	if _, err := second.KV().Delete(ctx, "book-state"); err != nil {
		return err
	}
	if err := bert.leave(ctx); err != nil {
		return err
	}
	return anna.leave(ctx)
}
