package curator

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// replay is what a caller sends, which can be received from the beginning again: a call that
// has not begun at one leader goes to the next one as it came.
//
// Invariant: a message is kept from when it is received until it is certain that it will not be
// needed again (commit), or the call is over. What is kept is counted in the backlog.
type replay struct {
	grpc.ServerStream
	backlog *backlog
	from    any  // the caller, as the backlog knows it
	hop     bool // the caller is a node, whose trailer says whether the call has begun

	mu sync.Mutex
	// changed is signalled at the end of a receive, and when another reading counts.
	changed sync.Cond
	// kept are the messages from number first on, and size the bytes of them that the backlog counts.
	kept        []rawframe.Frame
	first, size int
	// end is what follows the last message: io.EOF, or why no more can be received; ended is when it came.
	end   error
	ended time.Time
	// reader is the reading that counts. An earlier one may still be in a receive, and what it
	// receives is for the next one. nil: the call waits, or is over.
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

// replayed is how much of a call is kept, in bytes, before the message that is sent last. More
// leaves only if the leader reads it, and then the call has begun: what is not read fills the
// stream's window and the 64 KiB that gRPC takes before it lets a sender wait.
const replayed = streamWindow + 64<<10

// reading receives a replay from the beginning on. It is a stream of frames, for one
// goroutine at a time.
type reading struct {
	*replay
	next int // the number of the message that is received next
	// given is the size of the messages that it was given, and last that of the last one.
	given, last int
}

// errSuperseded is the end of a reading that is not the newest.
var errSuperseded = errors.New("the call goes elsewhere")

// again returns a new reading, and ends those before it.
func (r *replay) again() *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read(&reading{replay: r, next: r.first})
	return r.reader
}

// read has another reading count, or none. The caller holds mu.
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
			g.changed.Wait() // at the latest until the call ends, and the stream with it
		default:
			g.receive()
		}
	}
}

// receive receives one message from the caller, or the end. The caller holds mu, which is given up meanwhile.
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
	case g.reader == nil: // the call waits: it must not hold the message, so it goes nowhere
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

// fill blocks until the only message of a call that has one is there, and the caller's half-close. The reading
// is at the beginning again then.
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

// sent notes that what was read has been sent. Where there was no room to keep it, or the
// leader must have read some of it, it will not be needed again.
func (g *reading) sent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (g.full || g.given-g.last > replayed) && g.reader == g {
		g.commitLocked()
	}
}

// commit: nothing that was received will be needed again. It returns true the first time.
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

// takeBack reports whether the call can go elsewhere as it came. If so, the reading is over:
// what it is just sending does not count any more.
func (g *reading) takeBack() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.committed || g.reader != g {
		return false
	}
	g.read(nil)
	return true
}

// sending is for how long since then the caller had not sent all.
func (r *replay) sending(since time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		return time.Since(since)
	}
	return max(0, r.ended.Sub(since))
}

// room reports whether there is room to wait with what was received, and whether any message was lost because there
// was none.
func (r *replay) room() (enough, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.full, errors.Is(r.end, errNoRoom)
}

// drop frees what will not be received any more.
func (r *replay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.read(nil)
	r.free(len(r.kept))
}

// free frees the first n of the kept messages, and gives the room of all of them back. The caller holds mu.
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
