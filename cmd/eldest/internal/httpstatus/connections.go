package httpstatus

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// limit bounds the connections that are open at a time: clients must not use up the file descriptors
// that a leader may need.
const limit = 32

// moment is how long a connection exists, at least, before it is closed for another one: clients that
// reconnect at once must not have others closed before the server has read their requests. The
// kernel's queue of connections, usually 4096, is accepted in about a second.
const moment = 5 * time.Millisecond

// connections are those of a server. A new one is always accepted: when there are too many, another
// one is closed for it. If new ones waited, a client that holds all connections could keep a liveness
// probe waiting without end.
//
// Invariant: between two calls of track with a new connection, at most limit are open.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]usage
}

// usage is what a connection is used for, and since when.
type usage struct {
	// active is from the end of a request's header to the end of its answer. A connection
	// whose request is not complete is not active.
	active bool
	since  time.Time
}

// track is an http.Server's ConnState. The server calls it with a new connection before it accepts
// the next one. It blocks only for a new connection, and for a moment at most.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		time.Sleep(c.early())
	}
	c.mu.Lock()
	surplus := c.note(conn, state)
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close() // its request fails, and the server drops it
	}
}

// early returns how long to wait before a connection may be closed for a new one.
func (c *connections) early() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) < limit {
		return 0
	}
	return moment - time.Since(c.open[c.least()].since)
}

// note records the state of a connection, and returns one to close, or nil.
func (c *connections) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	_, known := c.open[conn]
	switch {
	case state == http.StateNew:
		if len(c.open) >= limit {
			surplus = c.least()
			delete(c.open, surplus)
		}
		c.open[conn] = usage{since: time.Now()}
	case state == http.StateClosed:
		delete(c.open, conn)
	case known: // else it was closed here
		c.open[conn] = usage{active: state == http.StateActive, since: time.Now()}
	}
	return surplus
}

// least is the connection to close for a new one, if limit are open: the one that has had no request
// for the longest time. If more than half of them have a request, it is the one whose request takes
// the longest: a client that does not read its answer is as idle as any other, and must not
// leave only one place to all others.
func (c *connections) least() (least net.Conn) {
	active := 0
	for _, u := range c.open {
		if u.active {
			active++
		}
	}
	for conn, u := range c.open {
		if u.active == (active > limit/2) && (least == nil || u.since.Before(c.open[least].since)) {
			least = conn
		}
	}
	return least
}
