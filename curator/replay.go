package curator

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// replay keeps what a caller sends, so that it can be received from the beginning again: a call
// that has not begun at one leader is sent unchanged to the next one.
//
// Invariant: a message is kept from when it is received until it is certain that it will not be
// needed again (commit), or the call is over. What is kept is counted in the backlog.
type replay struct {
	grpc.ServerStream
	backlog *backlog
	from    any  // the caller, as the backlog identifies it
	hop     bool // the caller is a node: the trailer must report whether the call has begun

	mu sync.Mutex
	// changed is signalled at the end of a receive, and when the current reading changes.
	changed sync.Cond
	// kept are the messages from number first on; size is how many of their bytes the backlog
	// counts.
	kept        []rawframe.Frame
	first, size int
	// end is what follows the last message: io.EOF, or the error of the receive; ended is when it
	// came.
	end   error
	ended time.Time
	// reader is the current reading. An earlier one may still be in a receive; what that receives
	// is for the current one. nil: the call waits, or is over.
	reader    *reading
	receiving bool
	// full: there is no room for what is kept. committed: none of it will be needed again.
	// over: the call has ended.
	full, committed, over bool
}

func newReplay(stream grpc.ServerStream, b *backlog, from any, hop bool) *replay {
	r := &replay{ServerStream: stream, backlog: b, from: from, hop: hop}
	r.changed.L = &r.mu
	return r
}

// replayed is how many bytes of a call are kept, without the message that was sent last. More can
// be sent only if the leader reads it, and then the call has begun: what is not read fills the
// stream's window and the 64 KiB that gRPC accepts before it blocks a sender.
const replayed = streamWindow + 64<<10

// reading receives a replay from the beginning. It is a stream of frames, for one goroutine at a
// time.
type reading struct {
	*replay
	next int // the number of the message that is received next
	// given is the size of the messages that were received from it, and last the size of the last
	// one.
	given, last int
}

// errSuperseded is the error of a reading that is not the newest.
var errSuperseded = errors.New("the call is sent elsewhere")

// again returns a new reading, and ends those before it.
func (r *replay) again() *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read(&reading{replay: r, next: r.first})
	return r.reader
}

// read changes the current reading; nil means none. The caller holds mu.
func (r *replay) read(by *reading) {
	r.reader = by
	r.changed.Broadcast()
}

// RecvMsg receives the next message into a frame, one that was kept or one from the caller;
// see grpc.ServerStream.
func (g *reading) RecvMsg(m any) error {
	f, ok := m.(*rawframe.Frame)
	if !ok {
		return g.ServerStream.RecvMsg(m)
	}
	f.Free()
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		switch at := g.next - g.first; {
		case g.reader != g:
			return errSuperseded
		case at < len(g.kept):
			g.take(at, f)
			return nil
		case g.end != nil:
			return g.end
		case g.receiving:
			g.changed.Wait() // at the latest until the call ends, which ends the stream
		default:
			g.receive()
		}
	}
}

// receive receives one message from the caller, or the end. The caller holds mu, which is unlocked
// meanwhile.
func (g *reading) receive() {
	var in rawframe.Frame
	g.receiving = true
	g.mu.Unlock()
	err := g.ServerStream.RecvMsg(&in)
	g.mu.Lock()
	g.receiving = false
	g.changed.Broadcast()
	switch n := in.Data.Len(); {
	case err != nil:
		g.end, g.ended = err, time.Now()
	case g.over:
		in.Free()
	case g.committed: // it is about to be taken
		g.kept = append(g.kept, in)
	case g.backlog.hold(g.from, n):
		g.kept, g.size = append(g.kept, in), g.size+n
	case g.reader == nil: // the call waits: it must not hold the message, so it is refused
		in.Free()
		g.full, g.end = true, errNoRoom
	default: // the reader takes it at once
		g.kept, g.full = append(g.kept, in), true
	}
}

// take puts the kept message at an index into a frame. The caller holds mu.
func (g *reading) take(at int, f *rawframe.Frame) {
	g.next++
	if g.committed { // then at is 0
		f.Data, g.kept, g.first = g.kept[0].Take(), g.kept[1:], g.first+1
	} else {
		f.Data = g.kept[at].Data
		f.Data.Ref()
	}
	g.last = f.Data.Len()
	g.given += g.last
}

// fill blocks until the only message of a unary call, and the half-close, have arrived. Then the
// reading is at the beginning again.
func (g *reading) fill() error {
	var f rawframe.Frame
	defer f.Free()
	if err := only(g, &f); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.given, g.last = g.first, 0, 0
	return nil
}

// sent records that what was read has been sent. If there was no room to keep it, or the leader
// must have read some of it, it will not be needed again.
func (g *reading) sent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (g.full || g.given-g.last > replayed) && g.reader == g {
		g.commitLocked()
	}
}

// commit records that nothing that was received will be needed again. It returns true the first
// time.
func (g *reading) commit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.reader == g && !g.committed
	if first {
		g.commitLocked()
	}
	return first
}

func (r *replay) commitLocked() {
	if r.committed {
		return
	}
	r.committed = true
	if r.hop {
		r.SetTrailer(metadata.Pairs(servedKey, begun))
	}
	r.free(r.reader.next - r.first)
}

// takeBack reports whether the call can be sent elsewhere unchanged. If so, the reading is over: a
// message that it is just sending does not count any more.
func (g *reading) takeBack() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.committed || g.reader != g {
		return false
	}
	g.read(nil)
	return true
}

// sending returns how long, from since on, the caller had not sent everything.
func (r *replay) sending(since time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		return time.Since(since)
	}
	return max(0, r.ended.Sub(since))
}

// room reports whether there is room to wait with what was received, and whether a message was lost
// because there was none.
func (r *replay) room() (enough, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.full, errors.Is(r.end, errNoRoom)
}

// drop frees what is kept, at the end of the call.
func (r *replay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.read(nil)
	r.free(len(r.kept))
}

// free frees the first n of the kept messages, and releases the room of all of them. The caller
// holds mu.
func (r *replay) free(n int) {
	for i := range r.kept[:n] {
		r.kept[i].Free()
	}
	r.kept, r.first = r.kept[n:], r.first+n
	if r.size > 0 {
		r.backlog.release(r.from, r.size)
		r.size = 0
	}
}
