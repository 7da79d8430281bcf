package rig

import (
	"net"
	"sync"
	"time"
)

// addr names a host.
type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }

// conn is one end of a connection.
type conn struct {
	in, out       *link
	local, remote addr
	once          sync.Once
	closed        func()
}

var _ net.Conn = (*conn)(nil)

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// Close ends the sending side, so that the peer sees the end of the stream
// when the network lets it through, and the receiving side at once.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.end()
		c.in.shut()
		if c.closed != nil {
			c.closed()
		}
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setDeadline(t); return nil }
func (c *conn) SetWriteDeadline(_ time.Time) error { return nil } // writes never block

// listener hands connections to a gRPC server.
type listener struct {
	once sync.Once
	done chan struct{}
	conn chan net.Conn
}

func newListener() *listener {
	return &listener{done: make(chan struct{}), conn: make(chan net.Conn)}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return addr("etcd") }
