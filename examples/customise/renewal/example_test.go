package renewal_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/renewal"
	"github.com/eldest-io/eldest/lease"
)

// A TTL that is no whole number of seconds is rounded up, and an interval that cannot work is
// refused.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	var renewed atomic.Int64
	session, leave := stage.Open(ctx, client, lease.Options{
		TTL: 5900 * time.Millisecond, Margin: 250 * time.Millisecond, Renewal: renewal.Anxious,
		Hooks: lease.Hooks{Renewed: func(lease.RenewedEvent) { renewed.Add(1) }},
	})
	defer leave()
	fmt.Println("granted:", session.TTL())
	stage.Until(ctx, "renewals", func() bool { return renewed.Load() >= 3 })
	fmt.Println("alive after three renewals:", session.Err() == nil)

	_, err := lease.Open(ctx, lease.Config{
		Lease: client,
		Options: lease.Options{
			TTL:     10 * time.Second,
			Renewal: func(granted time.Duration) lease.Renewal { return lease.Renewal{Every: granted, Timeout: time.Second} },
		},
	})
	fmt.Println("refused:", errors.Is(err, eldest.ErrInvalid))
	// Output:
	// granted: 6s
	// alive after three renewals: true
	// refused: true
}
