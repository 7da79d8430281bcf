package elector_test

import (
	"context"
	"fmt"
	"log"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Two nodes of a service. The first one leads; the second one follows it, and leads when the first
// one is stopped.
func Example() {
	ctx := context.Background()
	client, stop := etcdtest.ForExample()
	defer stop()

	node := func(id string) (e *elector.Elector, stop func()) {
		e, err := elector.New(elector.Config{
			Election: "reports", NodeID: id, Address: id + ":8080",
			Source: elector.Always(elector.Client(client)),
		})
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
				// Whatever the leader does, until it is over.
				if _, err := l.KV().Put(ctx, "last-report-by", id); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			})
		}()
		return e, func() { cancel(); <-done }
	}
	until := func(e *elector.Elector, role elector.Role) elector.Status {
		s, err := e.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() == role })
		if err != nil {
			log.Fatal(err)
		}
		return s
	}

	anna, stopAnna := node("anna")
	until(anna, elector.Leading)
	bert, stopBert := node("bert")
	leader, _ := until(bert, elector.Following).Leader()
	fmt.Println("bert follows", leader.NodeID, "at", leader.Address)

	stopAnna()
	fmt.Println("anna is", anna.Status().Role())
	until(bert, elector.Leading)
	fmt.Println("bert leads")
	stopBert()
	// Output:
	// bert follows anna at anna:8080
	// anna is unknown
	// bert leads
}
