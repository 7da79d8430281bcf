package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// The rate of calls, and how many may be under way at a time.
const (
	pause = 8 * time.Millisecond // on average
	most  = 2000
)

// crowds is how many times as many calls there are to a node before which they are to pile up.
const crowds = 8

// client calls the nodes, each at random, whatever happens to them. It does not know which of
// them leads. Calls come as if from many people who know nothing of each other: one that has no
// answer yet holds up no other.
type client struct {
	tell     func(Attempt)
	patience []time.Duration // one of them for each call

	mu      sync.Mutex
	targets []*target       // by node; nil before the node first listened
	step    int             // how many steps have begun
	crowded int             // the node before which calls are to pile up; none: -1
	window  *sync.WaitGroup // of the calls since the last call of elapsed

	asking   context.Context // until halt
	stop     context.CancelFunc
	life     context.Context // of the calls
	abort    context.CancelFunc
	all      sync.WaitGroup
	underWay chan struct{} // one for each call
}

// target is one process of a node as the client reaches it.
type target struct {
	name string
	conn *grpc.ClientConn
	// calls are those under way. They begin under the client's lock, and none when
	// another target has taken the place of this one.
	calls sync.WaitGroup
}

// close ends the connection after the calls: their end must not be our doing.
func (t *target) close() {
	t.calls.Wait()
	_ = t.conn.Close() // nobody uses it any more
}

func newClient(patience []time.Duration, tell func(Attempt)) *client {
	c := &client{tell: tell, patience: patience, targets: make([]*target, nodes), underWay: make(chan struct{}, most), crowded: -1, window: new(sync.WaitGroup)}
	c.life, c.abort = context.WithCancel(context.Background())
	c.asking, c.stop = context.WithCancel(c.life)
	return c
}

// reach tells the client where a node listens. A process that has ended is still called, in vain,
// until its node listens again.
func (c *client) reach(node int, name, address string) error {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		// What the client sends it sends once; see Attempt.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.targets[node]
	c.targets[node] = &target{name: name, conn: conn}
	c.mu.Unlock()
	if old != nil {
		c.all.Go(old.close)
	}
	return nil
}

// begin counts the steps.
func (c *client) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step++
}

// crowd has most calls go to one node from now on, and many more of them; -1 ends it.
func (c *client) crowd(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crowded = node
}

// pick draws a node, and begins a call to it. next is the mean time until the one after.
// over must be called when the call has been told of.
func (c *client) pick(rng *rand.Rand) (to *target, step int, next time.Duration, over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	node, next := rng.IntN(len(c.targets)), pause
	if c.crowded >= 0 {
		next /= crowds
		if rng.IntN(4) > 0 {
			node = c.crowded
		}
	}
	to = c.targets[node]
	to.calls.Add(1)
	window := c.window
	window.Add(1)
	return to, c.step, next, func() {
		to.calls.Done()
		window.Done()
	}
}

// elapsed returns a channel that is closed when all calls that began since the last call of
// elapsed are over, each in its own time. Those that begin from now on are not waited for.
func (c *client) elapsed() <-chan struct{} {
	c.mu.Lock()
	window := c.window
	c.window = new(sync.WaitGroup)
	c.mu.Unlock()
	over := make(chan struct{})
	c.all.Go(func() {
		window.Wait()
		close(over)
	})
	return over
}

// run calls until halt. All nodes must be reachable by then. All that is drawn is drawn here, one
// by one, so that a seed makes one sequence of calls, but for what crowd makes of it.
func (c *client) run(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	mean := pause
	for n := 1; ; n++ {
		select {
		case <-c.asking.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() * float64(mean))):
		}
		var to *target
		var step int
		var over func()
		to, step, mean, over = c.pick(rng)
		a := Attempt{Event: "attempt", ID: fmt.Sprintf("r%d", n), Node: to.name}
		Draw(&a, rng, step)
		patience := c.patience[rng.IntN(len(c.patience))]
		c.underWay <- struct{}{} // each is over in a bounded time
		c.all.Go(func() {
			defer over()
			c.try(to.conn, &a, patience)
			c.tell(a)
			<-c.underWay
		})
	}
}

// try sends the attempt and fills in what becomes of it. Only its own time ends it, or abort.
func (c *client) try(conn *grpc.ClientConn, a *Attempt, patience time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, patience)
	defer cancel()
	_ = a.Send(ctx, conn) // the attempt says it
}

// halt ends the calling, and blocks until what is under way has come to its end. Halting twice
// does nothing.
func (c *client) halt() {
	c.stop()
	c.all.Wait()
}

// close breaks everything off, and closes all connections.
func (c *client) close() {
	c.abort()
	c.halt()
	for _, t := range c.targets {
		if t != nil {
			t.close()
		}
	}
}
