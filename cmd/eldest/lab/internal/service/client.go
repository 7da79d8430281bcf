package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// The rate of calls, and how many may be in flight at a time.
const (
	pause = 8 * time.Millisecond // on average
	most  = 2000
)

// client calls the nodes, at random, in any state, and has all attempts that have ended. It has no
// information about the leader. Its methods are safe for concurrent use.
type client struct {
	scenario.History[Attempt]
	patience []time.Duration // the timeouts, of which each call has one
	step     atomic.Int64    // how many steps have begun
	targets  [nodes]atomic.Pointer[target]
}

// target is the newest process of a node, with the client's connection to it.
type target struct {
	node string
	conn *grpc.ClientConn
}

// reach sets the address of a node. A process that has ended is still called, without success,
// until the node's next process listens.
func (c *client) reach(node int, name, address string) error {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		// The client sends each request once; see Attempt.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return err
	}
	if old := c.targets[node].Swap(&target{name, conn}); old != nil { // closed after the last call, so that closing it ends no call
		time.AfterFunc(2*slices.Max(c.patience), func() { _ = old.conn.Close() })
	}
	return nil
}

// run makes calls until asking ends, and blocks until they have ended: by their answers, their
// timeouts, or the end of calling. All nodes must have been reached. note is called with each
// attempt, concurrently.
//
// Calls come as if from many independent clients: a call that has no answer yet delays no other
// call. All random choices are made here, one by one, so that a seed gives one sequence of calls.
func (c *client) run(asking, calling context.Context, seed uint64, note func(Attempt)) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all sync.WaitGroup
	defer all.Wait()
	underWay := make(chan struct{}, most)
	for n := 1; ; n++ {
		select {
		case <-asking.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() * float64(pause))):
		}
		to := c.targets[rng.IntN(nodes)].Load()
		a := Attempt{Event: "attempt", ID: fmt.Sprintf("r%d", n), Node: to.node}
		Draw(&a, rng, int(c.step.Load()))
		patience := c.patience[rng.IntN(len(c.patience))]
		underWay <- struct{}{} // each call ends in a bounded time
		all.Go(func() {
			ctx, cancel := context.WithTimeout(calling, patience)
			defer cancel()
			_ = a.Send(ctx, to.conn) // the attempt has the result
			c.Add(a)
			note(a)
			<-underWay
		})
	}
}

// close closes the connections to the newest processes, and ends the calls on them.
func (c *client) close() {
	for i := range c.targets {
		if t := c.targets[i].Load(); t != nil {
			_ = t.conn.Close() // it is no longer used
		}
	}
}
