package outage_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/clock"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/outage"
	"github.com/eldest-io/eldest/lease"
)

// Both manners at the deadline. The session's clock is turned by hand; for the store it is
// as if no renewal had been answered for the TTL.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	show(ctx, client, "strict", outage.New("limit/strict", outage.Stop))
	show(ctx, client, "lenient", outage.New("limit/lenient", outage.ReadOnly))
	// Output:
	// strict leads: write <nil>, read "1", fresh true
	// strict is past its deadline: write refused true, read refused true
	// lenient leads: write <nil>, read "1", fresh true
	// lenient is past its deadline: write refused true, read "1", fresh false
}

// show makes a store lead, and lose its lease.
func show(ctx context.Context, client *clientv3.Client, name string, store *outage.Store) {
	hand := &clock.Hand{}
	session, closeSession := stage.Open(ctx, client, lease.Options{TTL: time.Hour, Clock: hand})
	defer closeSession()
	candidate, leave := stage.Enter(ctx, client, election.Config{Election: name, Session: session})
	defer leave()
	leadership := stage.Must(candidate.Campaign(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = leadership.Lead(ctx, func(ctx context.Context) error { return store.Lead(ctx, leadership) })
	}()
	stage.Until(ctx, "the store has read etcd", func() bool { _, err := store.Read(); return err == nil })

	err := store.Write(ctx, "1")
	reading, _ := store.Read()
	fmt.Printf("%s leads: write %v, read %q, fresh %t\n", name, err, reading.Text, reading.Fresh)

	hand.Turn(time.Hour)
	reading, refused := store.Read()
	<-over
	err = store.Write(ctx, "2")
	fmt.Printf("%s is past its deadline: write refused %t, ", name, errors.Is(err, eldest.ErrNotLeading))
	if refused != nil {
		fmt.Println("read refused", errors.Is(refused, eldest.ErrNotLeading))
		return
	}
	fmt.Printf("read %q, fresh %t\n", reading.Text, reading.Fresh)
}
