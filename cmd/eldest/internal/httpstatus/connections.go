package httpstatus

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// limit bounds the connections that are open at a time: files that clients hold are files
// that a leader may need.
const limit = 32

// moment is what a connection has, at least, before it is closed for another one. It bounds
// how many are accepted in a second. Without it, clients that come back as soon as their
// connection is closed would have others closed before the server has read their requests.
// With it, what the kernel has in its queue, 4096 connections as a rule, takes a second or so.
const moment = 5 * time.Millisecond

// connections are those of a server. A new one is always accepted: when there are too many,
// another one is closed for it. If new ones waited, a client that holds as many connections as
// there may be would keep a liveness probe waiting for as long as it likes.
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

// track is an http.Server's ConnState. The server calls it with a new connection before it
// accepts the next one. It waits for a moment at most, and only with a new one.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		time.Sleep(c.early())
	}
	c.mu.Lock()
	surplus := c.note(conn, state)
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close() // its request ends with an error, and the server gives it up
	}
}

// early is for how long it is too early to close a connection for a new one.
func (c *connections) early() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) < limit {
		return 0
	}
	return moment - time.Since(c.open[c.least()].since)
}

// note takes down what became of a connection, and returns one to close, or nil.
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

// least is the connection to close for a new one, where there are limit: that which has had
// no request for the longest time. If more than half of them have one, it is that whose
// request takes the longest: a client that does not read its answer is as idle as any, and
// must not leave all others but one place.
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
