package peers

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxKept is how many bytes a connection keeps while the network is cut, about what a kernel keeps. After
// that, writes block.
const maxKept = 4 << 20

// lingering is how long the last bytes of a connection that was closed while the network was cut may take.
const lingering = 5 * time.Second

// conn is a connection of a network. It has only those methods of a TCP connection that can be cut.
type conn struct {
	net.Conn
	socket  syscall.Conn
	network *Network
	done    chan struct{} // closed by Close

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

func (c *conn) Write(b []byte) (int, error) {
	c.network.writes.Add(1)
	c.network.bytes.Add(int64(len(b)))
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		switch {
		case c.isClosed():
			return 0, net.ErrClosed
		case !c.network.isDown() && len(c.kept) == 0:
			return c.Conn.Write(b)
		case len(c.kept)+len(b) <= maxKept:
			c.kept = append(c.kept, b...)
			return len(b), nil
		}
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
}

// wait releases the connection until the network is healed and what was kept may have been sent.
func (c *conn) wait() error {
	c.network.mu.Lock()
	up := c.network.up
	c.network.mu.Unlock()
	c.writing.Unlock()
	defer c.writing.Lock()
	select {
	case <-up:
		time.Sleep(time.Millisecond)
		return nil
	case <-c.done:
		return net.ErrClosed
	}
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
		c.forget()
		_ = c.Conn.Close() // nothing reads its result
	}
}

// forget takes the connection out of the network.
func (c *conn) forget() {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.sockets, c)
}

// Close closes the connection; see Network about a network that is cut.
func (c *conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return net.ErrClosed
	}
	close(c.done)
	c.network.mu.Lock()
	down := c.network.down
	if !down {
		delete(c.network.sockets, c)
	}
	c.network.mu.Unlock()
	if down {
		return c.Conn.SetDeadline(time.Unix(1, 0)) // readers return
	}
	return c.Conn.Close()
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
