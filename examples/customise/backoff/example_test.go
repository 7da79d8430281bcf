package backoff_test

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/backoff"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/lease"
)

// All candidates have the same pauses, and sessions have shorter ones.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	spread, ttl := backoff.Full(50*time.Millisecond, 30*time.Second), 10*time.Second
	session, closeSession := stage.Open(ctx, client, lease.Options{TTL: ttl, Backoff: backoff.Within(ttl, spread)})
	defer closeSession()
	candidate, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Session: session, Options: election.Options{Backoff: spread}})
	defer leave()
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leads:", leadership.Holds(0))
	// Output:
	// leads: true
}
