package peers

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// lingering is how long the last bytes of a connection that was closed while the network was cut may take.
const lingering = 5 * time.Second

// conn is a connection of a network. It has only those methods of a TCP connection that can be cut.
type conn struct {
	net.Conn
	socket  syscall.Conn
	network *Network

	// writing is held by whatever writes to the socket, so that what was kept is sent first.
	writing sync.Mutex
	kept    []byte

	// mu is never held while the network's lock is taken.
	mu       sync.Mutex
	closed   bool
	deadline time.Time // of writes
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Read reads. Data that had arrived before the network was cut can still be read.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.isClosed() {
		err = net.ErrClosed
	}
	return n, err
}

// Write keeps the data while the network is cut, and until what was kept has been sent.
func (c *conn) Write(b []byte) (int, error) {
	c.network.writes.Add(1)
	c.network.bytes.Add(int64(len(b)))
	c.writing.Lock()
	defer c.writing.Unlock()
	switch {
	case c.isClosed():
		return 0, net.ErrClosed
	case !c.network.isDown() && len(c.kept) == 0:
		return c.Conn.Write(b)
	}
	c.kept = append(c.kept, b...)
	return len(b), nil
}

// healed sends what was kept.
func (c *conn) healed() {
	c.network.flushes.Go(c.flush)
}

func (c *conn) flush() {
	c.writing.Lock()
	defer c.writing.Unlock()
	closed := c.isClosed()
	if len(c.kept) > 0 {
		// The user's deadline was for a write that has returned long ago.
		_ = c.Conn.SetWriteDeadline(time.Now().Add(lingering))
		_, _ = c.Conn.Write(c.kept) // the user's next read or write reports an error
		c.kept = nil
		c.mu.Lock()
		if !c.closed {
			_ = c.Conn.SetWriteDeadline(c.deadline)
		}
		c.mu.Unlock()
	}
	if closed {
		c.network.forget(c)
		_ = c.Conn.Close() // nothing reads its result
	}
}

// Close closes the connection; see Network about a network that is cut.
func (c *conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	switch {
	case again:
		return net.ErrClosed
	case c.network.forget(c):
		return c.Conn.Close()
	}
	return c.Conn.SetDeadline(time.Unix(1, 0)) // readers return
}

func (c *conn) control() syscall.Conn { return c.socket }

func (c *conn) abandon() { _ = c.Conn.Close() }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of reads.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}
