package curator

import (
	"io"
	"sync"

	"google.golang.org/grpc"
)

// pushback is a caller's stream into which the only message of a call can be put back:
// of one that could not be sent to the leader, and goes somewhere else now.
type pushback struct {
	grpc.ServerStream

	mu   sync.Mutex
	held frame
	// next is what is received next.
	next reading
}

type reading uint8

const (
	fromStream reading = iota
	fromHeld
	fromEnd // the caller's, which was received, too
)

// RecvMsg receives into a frame; see grpc.ServerStream.
func (p *pushback) RecvMsg(m any) error {
	p.mu.Lock()
	switch f, ok := m.(*frame); {
	case ok && p.next == fromHeld:
		defer p.mu.Unlock()
		f.free()
		f.data, p.next = p.held.take(), fromEnd
		return nil
	case p.next == fromEnd:
		defer p.mu.Unlock()
		return io.EOF
	}
	p.mu.Unlock()
	return p.ServerStream.RecvMsg(m)
}

// unread puts the message back, and that it was the only one. It takes the frame's
// reference.
func (p *pushback) unread(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.data, p.next = f.take(), fromHeld
}

// drop frees what nobody will receive any more.
func (p *pushback) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.free()
	p.next = fromEnd
}
