package wire

import (
	"context"
	"errors"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Main is the main function of a program: it calls run with a context that ends after a
// minute.
func Main(run func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run(ctx)
}

// Must returns v. If there is an error it ends the program, with exit code 1, as Check does.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check ends the program if there is an error. Keys with a lease are then deleted with their
// leases.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Next returns the next message of a watch. If the watch has ended, it returns an error.
func Next(ctx context.Context, watched clientv3.WatchChan) (clientv3.WatchResponse, error) {
	select {
	case resp, ok := <-watched:
		if !ok {
			return resp, errors.New("the watch ended without an error")
		}
		return resp, resp.Err()
	case <-ctx.Done():
		return clientv3.WatchResponse{}, ctx.Err()
	}
}
