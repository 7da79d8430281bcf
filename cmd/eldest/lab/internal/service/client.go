package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// The rate of calls, and how many may be in flight at a time.
const (
	pause = 8 * time.Millisecond // on average
	most  = 2000
)

// client calls the nodes, at random, in any state. It has no information about the leader. Calls
// come as if from many independent clients: a call that has no answer yet delays no other call.
type client struct {
	tell     func(Attempt)
	patience []time.Duration // the timeouts, of which each call has one

	mu      sync.Mutex
	targets []target // by node
	step    int      // how many steps have begun

	asking   context.Context // until halt
	stop     context.CancelFunc
	life     context.Context // of the calls
	abort    context.CancelFunc
	all      sync.WaitGroup
	underWay chan struct{} // one element for each call in flight
}

// target is one process of a node, with the client's connection to it.
type target struct {
	name string
	conn *grpc.ClientConn
}

func newClient(patience []time.Duration, tell func(Attempt)) *client {
	c := &client{tell: tell, patience: patience, targets: make([]target, nodes), underWay: make(chan struct{}, most)}
	c.life, c.abort = context.WithCancel(context.Background())
	c.asking, c.stop = context.WithCancel(c.life)
	return c
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
	c.mu.Lock()
	old := c.targets[node].conn
	c.targets[node] = target{name, conn}
	c.mu.Unlock()
	if old != nil { // it is closed after the last call, so that closing it ends no call
		time.AfterFunc(2*slices.Max(c.patience), func() { _ = old.Close() })
	}
	return nil
}

func (c *client) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step++
}

// run makes calls until halt. All nodes must be reachable by then. All random choices are made
// here, one by one, so that a seed gives one sequence of calls.
func (c *client) run(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for n := 1; ; n++ {
		select {
		case <-c.asking.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() * float64(pause))):
		}
		c.mu.Lock()
		to, step := c.targets[rng.IntN(nodes)], c.step
		c.mu.Unlock()
		a := Attempt{Event: "attempt", ID: fmt.Sprintf("r%d", n), Node: to.name}
		Draw(&a, rng, step)
		patience := c.patience[rng.IntN(len(c.patience))]
		c.underWay <- struct{}{} // each call ends in a bounded time
		c.all.Go(func() {
			c.try(to.conn, &a, patience)
			c.tell(a)
			<-c.underWay
		})
	}
}

// try sends the attempt and fills in its result. Only its timeout or abort ends it.
func (c *client) try(conn *grpc.ClientConn, a *Attempt, patience time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, patience)
	defer cancel()
	_ = a.Send(ctx, conn) // the attempt has the result
}

// halt stops making calls, and blocks until the calls in flight have ended. It may be called again.
func (c *client) halt() {
	c.stop()
	c.all.Wait()
}

// close aborts all calls, and closes all connections.
func (c *client) close() {
	c.abort()
	c.halt()
	for _, t := range c.targets {
		if t.conn != nil {
			_ = t.conn.Close() // it is no longer used
		}
	}
}
