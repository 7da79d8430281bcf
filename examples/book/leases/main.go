// Command leases is the program of chapter 1: a lease is granted, renewed and revoked, and a
// renewal of a revoked lease is answered with a TTL of 0.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/lease"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("client")
	defer client.Hangup()

	renewed := make(chan struct{}, 1)
	cfg := lease.Config{
		Lease: client,
		Options: lease.Options{
			TTL: 59500 * time.Millisecond,
			// The default is a quarter of the TTL; this program should not take so long.
			Renewal: func(time.Duration) lease.Renewal { return lease.Renewal{Every: time.Second, Timeout: 10 * time.Second} },
			Hooks: lease.Hooks{Renewed: func(lease.RenewedEvent) {
				select {
				case renewed <- struct{}{}:
				default: // one is enough
				}
			}},
		},
	}
	session := wire.Must(lease.Open(ctx, cfg))
	// etcd's TTLs are whole seconds; fractions are rounded up, never down.
	fmt.Println("wanted", cfg.TTL, "and was granted", session.TTL())
	// The margin is a tenth, so the last 6 seconds are not certain.
	fmt.Println("certain for another 40s:", session.Holds(40*time.Second))
	fmt.Println("certain for another 54s:", session.Holds(54*time.Second))

	select {
	case <-renewed:
	case <-ctx.Done():
		wire.Check(ctx.Err())
	}
	fmt.Println("renewed once, state:", session.Status().State)

	// First the session ends on this side, then the lease is revoked.
	wire.Check(session.Close(ctx))
	fmt.Println("closed, certain for another 0s:", session.Holds(0))

	// etcd answers the renewal of a revoked lease with a TTL of 0, not with an error. Its client
	// makes an error of that; programs without that client must check the TTL themselves.
	_, err := client.KeepAliveOnce(ctx, session.ID())
	fmt.Println("renewing a revoked lease:", err)
	// So a lease is resumed by renewing it. Granting it again would make a new one, without keys,
	// with the same ID.
	_, err = lease.Resume(ctx, cfg, session.ID())
	fmt.Println("resuming a revoked lease is a lost session:", errors.Is(err, eldest.ErrSessionLost))
}
