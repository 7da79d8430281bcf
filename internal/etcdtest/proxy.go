package etcdtest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Proxy is a TCP proxy in this process between clients and one member. Initially it passes
// everything on at once. Faults may be set at any time, from any goroutine; they apply to existing
// and to new connections, until Mend. Inbound is from the client to the member, Outbound is from
// the member to the client.
type Proxy struct {
	// Endpoint is the URL that a client dials in place of the member's.
	Endpoint string

	target string
	lis    net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	rules   rules
	changed chan struct{} // closed and replaced at each change of rules
	conns   map[*conn]bool
	swallow []*Swallow // armed, and no request has matched yet
	stats   Stats
	closed  bool
}

// rules are the active faults.
type rules struct {
	drop, hold Direction
	delay      [2]time.Duration // inbound, outbound
	refuse     bool
}

// Stats counts what a proxy has done since it was made. Counts never fall.
type Stats struct {
	// Accepted and Refused count connections; Reset counts those that were broken by Reset, by Mend
	// after a Drop, and by a swallowed reply.
	Accepted, Refused, Reset int64
	// Passed, Dropped, Held and Delayed count pieces (HTTP/2 frames). Pieces that were held or
	// delayed are counted in Passed too once they got through.
	Passed, Dropped, Held, Delayed Pieces
	// Swallowed counts replies that SwallowNextReply has taken.
	Swallowed int64
}

// Pieces counts by direction.
type Pieces struct{ Inbound, Outbound int64 }

// newProxy starts a proxy in front of the given URL. The caller must close it.
func newProxy(target string) (*Proxy, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("etcdtest: starting a proxy: %w", err)
	}
	p := &Proxy{
		Endpoint: "http://" + lis.Addr().String(),
		target:   strings.TrimPrefix(target, "http://"),
		lis:      lis,
		changed:  make(chan struct{}),
		conns:    make(map[*conn]bool),
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Stats returns the counts so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Delay makes everything that is forwarded inbound and outbound from now on arrive later by these
// durations; the order stays. The delay also applies to frames that are already on their way.
func (p *Proxy) Delay(inbound, outbound time.Duration) {
	p.change(func(r *rules) { r.delay = [2]time.Duration{inbound, outbound} })
}

// Drop makes the proxy a black hole in the given directions from now on, and in no other: frames
// are accepted and discarded, the end of a connection included. Mend then resets the connections
// that lost something, since they cannot be continued.
func (p *Proxy) Drop(d Direction) { p.change(func(r *rules) { r.drop = d }) }

// Hold keeps frames in the given directions from now on, and in no other, until Mend passes them
// on, however late: this is a network that recovers before TCP gives up.
func (p *Proxy) Hold(d Direction) { p.change(func(r *rules) { r.hold = d }) }

// Refuse resets new connections at once; existing ones stay.
func (p *Proxy) Refuse() { p.change(func(r *rules) { r.refuse = true }) }

// Mend ends all faults, delays included. Armed swallows stay armed.
func (p *Proxy) Mend() {
	p.change(func(r *rules) { *r = rules{} })
	p.reset(func(c *conn) bool { return c.lossy })
}

// Reset breaks all existing connections, with a TCP reset to both sides, and returns how many there
// were.
func (p *Proxy) Reset() int { return p.reset(func(*conn) bool { return true }) }

func (p *Proxy) change(f func(*rules)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.rules)
	close(p.changed)
	p.changed = make(chan struct{})
}

// reset breaks the connections that which selects; which is called under p.mu.
func (p *Proxy) reset(which func(*conn) bool) int {
	p.mu.Lock()
	var picked []*conn
	for c := range p.conns {
		if which(c) {
			picked = append(picked, c)
			delete(p.conns, c)
			p.stats.Reset++
		}
	}
	p.mu.Unlock()
	for _, c := range picked {
		c.abort()
	}
	return len(picked)
}

// close ends the proxy and its connections and waits for its goroutines.
func (p *Proxy) close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	err := p.lis.Close()
	p.Reset()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.lis.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client gave up before it was accepted
		}
		p.mu.Lock()
		refuse := p.rules.refuse || p.closed
		if refuse {
			p.stats.Refused++
		}
		p.mu.Unlock()
		if refuse {
			resetTCP(client)
			continue
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve connects a client to the member and forwards both directions until both
// have ended.
func (p *Proxy) serve(client net.Conn) {
	member, err := net.DialTimeout("tcp", p.target, callTimeout)
	if err != nil {
		resetTCP(client) // as the machine of a member that does not run would do
		return
	}
	c := &conn{proxy: p, client: client, member: member, done: make(chan struct{})}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.conns[c] = true
		p.stats.Accepted++
	}
	p.mu.Unlock()
	if closed {
		c.abort()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.forward(Inbound, client, member) })
	both.Go(func() { c.forward(Outbound, member, client) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}
