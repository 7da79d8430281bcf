package liveness_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/liveness"
	"github.com/eldest-io/eldest/lease"
)

// Anna's database stops responding. Her process and her network are fine, and Bert leads all the
// same.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	var broken atomic.Bool
	ping := func(context.Context) error {
		if broken.Load() {
			return errors.New("no answer")
		}
		return nil
	}
	pulse := lease.NewLiveness(1500 * time.Millisecond)
	var checks sync.WaitGroup
	defer checks.Wait()
	checking, end := context.WithCancel(ctx)
	defer end()
	checks.Go(func() { liveness.While(checking, pulse, 20*time.Millisecond, ping) })

	session, closeSession := stage.Open(ctx, client, lease.Options{TTL: 3 * time.Second, Liveness: pulse})
	defer closeSession()
	anna, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Session: session})
	defer leave()
	leadership := stage.Must(anna.Campaign(ctx))
	fmt.Println("anna leads")

	bert, leaveToo := stage.Enter(ctx, client, election.Config{Election: "jobs"})
	defer leaveToo()
	broken.Store(true)
	next := stage.Must(bert.Campaign(ctx))
	fmt.Println("bert leads:", next.Token() > leadership.Token())
	fmt.Println("anna was unresponsive:", errors.Is(leadership.Err(), eldest.ErrUnresponsive))
	_, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{Liveness: pulse}})
	fmt.Println("and cannot open a session yet:", errors.Is(err, eldest.ErrUnresponsive))
	// Output:
	// anna leads
	// bert leads: true
	// anna was unresponsive: true
	// and cannot open a session yet: true
}
