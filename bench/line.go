package bench

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// line is the network of one client. While it is cut, nothing is sent, nothing
// arrives and nobody is told: as with a cable that was pulled, both sides wait.
type line struct {
	mu   sync.Mutex
	open chan struct{} // closed while the line is whole
}

func newLine() *line {
	l := &line{open: make(chan struct{})}
	close(l.open)
	return l
}

// option is for the client whose line it is.
func (l *line) option() grpc.DialOption { return grpc.WithContextDialer(l.dial) }

// set cuts or mends the line. What was under way when it was cut arrives after it is
// mended.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		if cut {
			l.open = make(chan struct{})
		}
	default:
		if !cut {
			close(l.open)
		}
	}
}

// pass blocks while the line is cut, or until done.
func (l *line) pass(done <-chan struct{}) bool {
	for {
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		select {
		case <-open:
		case <-done:
			return false
		}
		l.mu.Lock()
		same := l.open == open
		l.mu.Unlock()
		if same {
			return true
		}
	}
}

func (l *line) dial(ctx context.Context, address string) (net.Conn, error) {
	if !l.pass(ctx.Done()) {
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
	return &lineConn{Conn: conn, line: l, closed: make(chan struct{})}, nil
}

// lineConn is a connection over a line.
type lineConn struct {
	net.Conn
	line   *line
	once   sync.Once
	closed chan struct{}
}

// Read holds back what arrives while the line is cut.
func (c *lineConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.line.pass(c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *lineConn) Write(b []byte) (int, error) {
	if !c.line.pass(c.closed) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
