package rig

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// chunk is the data of one Write, and when it arrives.
type chunk struct {
	data []byte
	at   time.Time
}

// link is one direction of a connection. Like TCP it never loses or reorders bytes: a direction
// that is held keeps what was written and delivers it, late, when it is released. Only a reset or
// the death of the host loses bytes.
type link struct {
	host *Host // whose conditions are read at each use
	way  Way

	mu     sync.Mutex
	queue  []chunk
	last   time.Time // arrival of the newest chunk; later ones never overtake it
	ended  bool      // the writer closed; the reader gets EOF after the queue
	endAt  time.Time
	broken bool          // reset: both sides are notified at once
	deaf   bool          // the reader closed; the writer is notified in its own reads only
	wake   chan struct{} // one slot; there is one reader at a time
}

func newLink(h *Host, way Way) *link {
	return &link{host: h, way: way, wake: make(chan struct{}, 1)}
}

// poke wakes the reader to check again.
func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write never blocks: the queue is unlimited.
func (l *link) write(p []byte) (int, error) {
	w := l.host.weather(l.way)
	if w.loss > 0 {
		w.delay += l.host.retransmit(w.loss)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken || l.ended {
		return 0, syscall.ECONNRESET
	}
	if w.dead || l.deaf {
		return len(p), nil
	}
	switch {
	case w.held:
		l.host.held.Add(int64(len(p)))
	case w.delay > w.trip:
		l.host.late.Add(int64(len(p)))
	}
	at := time.Now().Add(w.delay)
	if at.Before(l.last) {
		at = l.last
	}
	l.last = at
	l.queue = append(l.queue, chunk{data: append([]byte(nil), p...), at: at})
	l.poke()
	return len(p), nil
}

// read blocks until bytes have arrived, the writer closed, or the link broke.
func (l *link) read(p []byte) (int, error) {
	for {
		n, wait, err := l.tryRead(p)
		if n > 0 || err != nil {
			return n, err
		}
		if wait <= 0 {
			<-l.wake
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryRead returns bytes or an error if there is one now, or else the time to the next event that
// happens by itself; 0 means until woken.
func (l *link) tryRead(p []byte) (n int, wait time.Duration, err error) {
	w := l.host.weather(l.way)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.deaf:
		return 0, 0, net.ErrClosed
	case l.broken:
		return 0, 0, syscall.ECONNRESET
	}
	if w.held || w.dead {
		return 0, 0, nil
	}
	if len(l.queue) > 0 {
		head := &l.queue[0]
		if now.Before(head.at) {
			return 0, head.at.Sub(now), nil
		}
		n = copy(p, head.data)
		if head.data = head.data[n:]; len(head.data) == 0 {
			l.queue = l.queue[1:]
		}
		return n, 0, nil
	}
	if l.ended {
		if now.Before(l.endAt) {
			return 0, l.endAt.Sub(now), nil
		}
		return 0, 0, io.EOF
	}
	return 0, 0, nil
}

// hurry makes everything in flight arrive within trip.
func (l *link) hurry(trip time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now().Add(trip)
	for i := range l.queue {
		if l.queue[i].at.After(at) {
			l.queue[i].at = at
		}
	}
	if l.last.After(at) {
		l.last = at
	}
	if l.endAt.After(at) {
		l.endAt = at
	}
	l.poke()
}

// end closes the writer's side: what is queued still arrives.
func (l *link) end() { l.endAfter(0) }

// endAfter makes the end arrive d after the last bytes of the queue.
func (l *link) endAfter(d time.Duration) {
	w := l.host.weather(l.way)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.endAt = time.Now().Add(w.delay)
	if l.endAt.Before(l.last) {
		l.endAt = l.last
	}
	l.endAt = l.endAt.Add(d)
	l.poke()
}

// shut closes the reader's side. The writer's data is dropped from now on: failing the writes would
// be faster than any network, and gRPC spins on a connection that cannot be written and does not
// end when read.
func (l *link) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
	l.queue = nil
	l.poke()
}

// tear breaks the link at once for both sides.
func (l *link) tear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	l.queue = nil
	l.poke()
}

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

// Close ends the sending side, so that the peer receives the end of the stream when the network
// allows it, and the receiving side at once.
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

// Writes never block, and reads end with the link: gRPC has deadlines of its own.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

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
