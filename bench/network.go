package bench

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"
)

// network is the network of one client. While it is cut, no data is sent and none arrives, and no
// connection fails: as with a cable that was pulled, both sides wait.
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

// cut cuts or restores the network. Data that was on its way arrives after it is restored.
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

// pass blocks while the network is cut; it returns false if done is closed first.
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

// dial is the dialer of the client that uses this network.
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

// connection is a connection over a network.
type connection struct {
	net.Conn
	network *network
	closed  <-chan struct{}
	end     func()
}

// Read holds back data that arrives while the network is cut.
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
