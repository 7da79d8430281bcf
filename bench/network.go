package bench

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"
)

// network is that of one client. While it is cut, nothing is sent and nothing
// arrives, without an error: as with a cable that was pulled, both sides wait.
type network struct {
	mu   sync.Mutex
	down bool
	up   chan struct{} // closed while the network is not down
}

func newNetwork() *network {
	n := &network{down: true, up: make(chan struct{})}
	n.cut(false)
	return n
}

// cut cuts or mends the network. What was under way when it was cut arrives after it is mended.
func (n *network) cut(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case down == n.down:
	case down:
		n.up = make(chan struct{})
	default:
		close(n.up)
	}
	n.down = down
}

// pass blocks while the network is cut; it returns false when done is closed before.
func (n *network) pass(done <-chan struct{}) bool {
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	select {
	case <-up:
		return true
	case <-done:
		return false
	}
}

// dial is for the client whose network it is.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	if !n.pass(ctx.Done()) {
		return nil, context.Cause(ctx)
	}
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", strings.TrimPrefix(path, "//")
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	closed, end := context.WithCancel(context.Background())
	return &connection{Conn: conn, network: n, closed: closed.Done(), end: end}, nil
}

// connection is one over a network.
type connection struct {
	net.Conn
	network *network
	closed  <-chan struct{}
	end     func()
}

// Read holds back what arrives while the network is cut.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.network.pass(c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	if !c.network.pass(c.closed) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *connection) Close() error {
	c.end()
	return c.Conn.Close()
}
