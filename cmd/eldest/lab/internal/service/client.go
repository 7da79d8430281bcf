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

// client asks the nodes, each at random, whatever happens to them. It knows nothing of
// leaders: whichever node it asks, it wants an answer. Requests come as if from many
// people who know nothing of each other: one that has no answer yet holds up no other.
type client struct {
	tell     func(Attempt)
	patience []time.Duration // one of them for each request

	mu      sync.Mutex
	targets []*target       // by node; nil before the node first listened
	act     int             // how many acts have begun
	crowded int             // the node before which requests are to pile up; none: -1
	window  *sync.WaitGroup // of the requests since the last cut of the time; see elapsed

	stop     context.CancelFunc
	asking   sync.WaitGroup
	life     context.Context // of the requests
	abort    context.CancelFunc
	underWay chan struct{} // one for each request
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
	return c
}

// reach tells the client where a node listens. A process that is gone is still asked,
// in vain, until its node listens again.
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
		c.asking.Go(old.close)
	}
	return nil
}

// begin counts acts: each has logs of its own, so that none grows for ever.
func (c *client) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.act++
}

// crowd has most requests go to one node from now on, and many more of them; -1 ends it.
func (c *client) crowd(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crowded = node
}

// crowds is how many times as many requests there are then.
const crowds = 8

// pick draws a node, and begins a call to it. next is the mean time until the one after.
// over must be called when the request has been told of.
func (c *client) pick(rng *rand.Rand) (to *target, act int, next time.Duration, over func()) {
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
	return to, c.act, next, func() {
		to.calls.Done()
		window.Done()
	}
}

// elapsed returns a channel that is closed when all requests that began before now are
// over, each in its own time. Those that begin from now on are not waited for. One
// after another: what an earlier call waits for a later one does not.
func (c *client) elapsed() <-chan struct{} {
	c.mu.Lock()
	window := c.window
	c.window = new(sync.WaitGroup)
	c.mu.Unlock()
	over := make(chan struct{})
	c.asking.Go(func() {
		window.Wait()
		close(over)
	})
	return over
}

// The rate of requests, and how many may be under way at a time.
const (
	pause = 8 * time.Millisecond // on average
	most  = 2000
)

// run asks until halt. All nodes must be reachable by then.
func (c *client) run(seed uint64) {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.asking.Go(func() { c.ask(ctx, rand.New(rand.NewPCG(seed, 1))) })
}

// ask sends requests until ctx ends. All that is drawn is drawn here, one by one, so
// that a seed stands for one sequence of requests, but for what crowd makes of it.
func (c *client) ask(ctx context.Context, rng *rand.Rand) {
	mean := pause
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.ExpFloat64() * float64(mean))):
		}
		var to *target
		var act int
		var over func()
		to, act, mean, over = c.pick(rng)
		a := Attempt{Event: "attempt", ID: fmt.Sprintf("r%d", n), Node: to.name}
		Draw(&a, rng, act)
		patience := c.patience[rng.IntN(len(c.patience))]
		c.underWay <- struct{}{} // each is over in a bounded time
		c.asking.Go(func() {
			defer over()
			c.try(to.conn, &a, patience)
			c.tell(a)
			<-c.underWay
		})
	}
}

// halt ends the asking; what is under way comes to its end first. Halting twice, or
// without a run, does nothing.
func (c *client) halt() {
	if c.stop != nil {
		c.stop()
	}
	c.asking.Wait()
}

// close breaks everything off, and closes all connections.
func (c *client) close() {
	c.abort()
	c.halt()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, t := range c.targets {
		if t != nil {
			t.close()
			c.targets[i] = nil
		}
	}
}

// Draw decides what is asked for. Every value is another one, so that what is read
// shows who wrote it.
func Draw(a *Attempt, rng *rand.Rand, act int) {
	const shared, logs = 8, 4
	a.Key = fmt.Sprintf("key-%d", rng.IntN(shared))
	switch p := rng.IntN(100); {
	case p < 50:
		a.Method, a.Value = Put, "of "+a.ID
	case p < 70:
		a.Method, a.Key, a.Value = Append, fmt.Sprintf("log-%d-%d", act, rng.IntN(logs)+1), a.ID+";"
	case p < 75:
		a.Method = Delete
	default:
		a.Method = Get
	}
}

// try sends the attempt and fills in what becomes of it. It is not broken off by halt:
// only its own time ends it, or abort.
func (c *client) try(conn *grpc.ClientConn, a *Attempt, patience time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, patience)
	defer cancel()
	_ = a.Send(ctx, conn) // the attempt says it
}
