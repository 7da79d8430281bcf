package clock_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/clock"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/lease"
)

// A test of a program's reaction to the end of its lease. The TTL is an hour, but the test does not
// wait.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	hand := &clock.Hand{}
	session, closeSession := stage.Open(ctx, client, lease.Options{TTL: time.Hour, Clock: hand})
	defer closeSession()
	candidate, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Session: session})
	defer leave()
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	hand.Turn(50 * time.Minute)
	fmt.Println("after 50 minutes: leads", leadership.Holds(0), "and for another 10:", leadership.Holds(10*time.Minute))
	hand.Turn(10 * time.Minute)
	fmt.Println("after an hour: leads", leadership.Holds(0))
	<-leadership.Done() // what the program under test waits for
	fmt.Println("why:", errors.Is(leadership.Err(), eldest.ErrSessionLost))
	_, err = leadership.KV().Put(ctx, "state", "late")
	fmt.Println("a late write is refused:", errors.Is(err, eldest.ErrNotLeading))
	// Output:
	// after 50 minutes: leads true and for another 10: false
	// after an hour: leads false
	// why: true
	// a late write is refused: true
}
