package etcdtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
)

// Swallow is one reply that is to be lost: the request reaches etcd and is carried out, its reply
// does not arrive, and the connection breaks, so that the outcome is unknown to the client.
type Swallow struct {
	match func(message []byte) bool

	mu      sync.Mutex
	claimed bool
	request []byte
	done    chan struct{}
}

// taking is a swallow in progress on one connection, guarded by the proxy's mutex.
type taking struct {
	*Swallow
	stream uint32
	unary  bool // the request ended its side of the stream
	begun  bool // the reply has begun to arrive
	// complete is set when the whole reply has come. Frames that the proxy had read before the
	// reset may follow; they must not complete it again.
	complete bool
}

// Containing matches requests whose message contains the given bytes, such as a key
// or a value: protobuf leaves both as they are.
func Containing(part string) func(message []byte) bool {
	return func(message []byte) bool { return bytes.Contains(message, []byte(part)) }
}

// SwallowNextReply loses the reply of the next request of this host, to any member, that match accepts
// (nil: of any kind, a renewal included). match receives the request's protobuf message, up to its first 16 KiB, on the
// proxy's goroutine. The request gets through; so do other replies until this reply begins. When
// the whole reply has come from the member (the whole reply of a unary call, the next message of a
// stream), the connection is reset and the returned Swallow is done. SwallowNextReply does not
// block.
func (h *Host) SwallowNextReply(match func(message []byte) bool) *Swallow {
	s := &Swallow{match: match, done: make(chan struct{})}
	h.each(func(p *Proxy) { p.arm(s) })
	return s
}

func (p *Proxy) arm(s *Swallow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = append(p.swallow, s)
}

// Done is closed when the reply has been swallowed and the connection reset.
func (s *Swallow) Done() <-chan struct{} { return s.done }

// Wait blocks until Done or until ctx ends, which is an error: the fault did not take effect.
func (s *Swallow) Wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("etcdtest: no reply was swallowed: %w", context.Cause(ctx))
	}
}

// Request is the message of the request whose reply was or is being swallowed; nil
// before there is one.
func (s *Swallow) Request() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.request)
}

// claim assigns s to this request, unless it is assigned to another or does not match. A swallow
// may be armed on several proxies.
func (s *Swallow) claim(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed || s.match != nil && !s.match(message) {
		return false
	}
	s.claimed, s.request = true, slices.Clone(message)
	return true
}

func (s *Swallow) spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

func (s *Swallow) finish() { close(s.done) }

// filter examines a frame that is about to pass (nil at the end of the connection). It returns
// whether the frame may pass, and a swallow that is complete with it. The caller holds the proxy's
// mutex.
func (c *conn) filter(d Direction, fr *frame) (pass bool, complete *Swallow) {
	switch {
	case fr == nil:
		return true, nil
	case d == Inbound:
		if msg := fr.message(); msg != nil && c.taken == nil {
			c.take(fr, msg)
		}
		return true, nil
	case c.taken == nil:
		return true, nil
	}
	t := c.taken
	if fr.stream == t.stream {
		t.begun = true
	}
	if !t.begun {
		return true, nil
	}
	// No frame passes any more: the reply's headers have changed the state of the connection's
	// header compression, so the client could not decode the next frames anyway.
	if !t.complete && fr.stream == t.stream && (fr.ends() || !t.unary && fr.kind == frameData) {
		t.complete = true
		c.proxy.stats.Swallowed++
		return false, t.Swallow
	}
	return false, nil
}

// take begins to swallow the reply of the request in fr if an armed swallow matches it.
func (c *conn) take(fr *frame, msg []byte) {
	p := c.proxy
	p.swallow = slices.DeleteFunc(p.swallow, (*Swallow).spent)
	for _, s := range p.swallow {
		if s.claim(msg) {
			c.taken = &taking{Swallow: s, stream: fr.stream, unary: fr.ends()}
			return
		}
	}
}
