package resolver

import (
	"context"
	"fmt"

	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
)

// builder makes what follows the leader of one election, for one connection: a function that
// publishes until its context ends.
type builder func(to publisher, opts grpcresolver.BuildOptions) func(context.Context)

// Scheme returns "eldest".
func (builder) Scheme() string { return Scheme }

// Build starts to follow the leader of the election in the target, and returns at once. The error
// wraps eldest.ErrInvalid; gRPC returns it to the callers.
func (b builder) Build(target grpcresolver.Target, conn grpcresolver.ClientConn, opts grpcresolver.BuildOptions) (grpcresolver.Resolver, error) {
	election, err := electionOf(target)
	if err != nil {
		return nil, err
	}
	run := b(publisher{election: election, conn: conn}, opts)
	ctx, stop := context.WithCancel(context.Background())
	f := &following{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		run(ctx)
	}()
	return f, nil
}

// following is a resolver that consists of one goroutine.
type following struct {
	stop context.CancelFunc
	done chan struct{}
}

// ResolveNow does nothing: changes arrive by themselves.
func (f *following) ResolveNow(grpcresolver.ResolveNowOptions) {}

// Close ends the goroutine and waits for it.
func (f *following) Close() {
	f.stop()
	<-f.done
}

func invalid(format string, args ...any) error {
	return &eldest.OpError{Op: "resolve", Err: fmt.Errorf("%w: "+format, append([]any{eldest.ErrInvalid}, args...)...)}
}
