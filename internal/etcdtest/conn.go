package etcdtest

import (
	"net"
	"sync"
	"time"
)

// conn is one client's connection through a proxy to the member.
type conn struct {
	proxy          *Proxy
	client, member net.Conn

	once sync.Once
	done chan struct{} // closed when the connection is over

	// Guarded by proxy.mu.
	lossy bool    // something was dropped: the connection cannot be continued
	taken *taking // the reply that is being swallowed
}

// queued is a frame that waits until it may pass. A nil frame is the end of the connection, which
// Drop drops like any other frame.
type queued struct {
	frame *frame
	at    time.Time // when it was read
}

// queueLength bounds how much a held direction keeps in memory. When the queue is full the sender
// is not read from, and blocks as it would with a stalled network.
const queueLength = 4096

// forward passes one direction on until it ends. It reads ahead into a queue, so that a delay does
// not slow the sender down.
func (c *conn) forward(d Direction, from, to net.Conn) {
	queue := make(chan queued, queueLength)
	var wg sync.WaitGroup
	wg.Go(func() {
		frames := newFrameReader(from)
		for {
			fr, err := frames.next()
			q := queued{at: time.Now()}
			if err == nil {
				q.frame = &fr
			}
			select {
			case queue <- q:
			case <-c.done:
				return
			}
			if err != nil {
				return
			}
		}
	})
	defer wg.Wait()
	for {
		var q queued
		select {
		case q = <-queue:
		case <-c.done:
			return
		}
		pass, ok := c.admit(d, q)
		switch {
		case !ok:
			return
		case !pass:
		case q.frame == nil:
			c.close()
			return
		default:
			if _, err := to.Write(q.frame.bytes); err != nil {
				c.close()
				return
			}
		}
		if q.frame == nil {
			// The end was dropped. The other side receives no end until the connection is reset.
			<-c.done
			return
		}
	}
}

// admit blocks until the frame may pass or is lost; ok is false when the connection ends first. The
// rules at the moment of passing apply: a delayed frame is subject to a fault that began after it
// was read.
func (c *conn) admit(d Direction, q queued) (pass, ok bool) {
	p := c.proxy
	held, delayed := false, false
	for {
		p.mu.Lock()
		r, changed := p.rules, p.changed
		wait := time.Duration(0)
		if r.hold&d == 0 {
			wait = time.Until(q.at.Add(r.delay[index(d)]))
		}
		switch {
		case wait > 0:
			if !delayed {
				delayed = true
				p.stats.Delayed.add(d)
			}
		case r.hold&d != 0:
			if !held {
				held = true
				p.stats.Held.add(d)
			}
		case r.drop&d != 0:
			c.lossy = true
			p.stats.Dropped.add(d)
			p.mu.Unlock()
			return false, true
		default:
			pass, reset := c.filter(d, q.frame)
			if pass {
				p.stats.Passed.add(d)
			}
			p.mu.Unlock()
			if reset != nil {
				p.reset(func(other *conn) bool { return other == c })
				reset.finish()
			}
			return pass, true
		}
		p.mu.Unlock()

		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-changed:
		case <-c.done:
			return false, false
		}
	}
}

// close closes the connection in an orderly way, abort with a reset.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.client.Close() // errors do not matter: the connection is over
		_ = c.member.Close()
	})
}

func (c *conn) abort() {
	c.once.Do(func() {
		close(c.done)
		resetTCP(c.client)
		resetTCP(c.member)
	})
}

// resetTCP closes a connection so that the peer receives a reset: without lingering, unsent data is
// discarded.
func resetTCP(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails if the connection is closed already
	}
	_ = c.Close()
}

func index(d Direction) int {
	if d == Inbound {
		return 0
	}
	return 1
}

func (n *Pieces) add(d Direction) {
	if d == Inbound {
		n.Inbound++
	} else {
		n.Outbound++
	}
}
