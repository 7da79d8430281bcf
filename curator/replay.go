package curator

import (
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// replay is what a caller sends, which can be received from the beginning again: a call that
// has not begun at one leader goes to the next one as it came.
//
// Invariant: a message is kept from when it is received until it is certain that nobody will
// ask for it again (commit), or the call is over. What is kept is counted in the lobby.
type replay struct {
	grpc.ServerStream
	lobby *lobby
	from  any  // the caller, as the lobby knows it
	hop   bool // it is a node, which is told at the end whether the call has begun

	mu sync.Mutex
	// kept are the messages from number first on.
	kept  []rawframe.Frame
	first int
	size  int // of those that the lobby counts
	// end is what follows the last message: io.EOF, or why no more can be received.
	end error
	// reader is the one that counts. An earlier one may still sit in a receive, and what it
	// receives is the next one's. nil: the call waits, or is over.
	reader    *reading
	receiving bool
	changed   chan struct{} // closed at the end of a receive or a reading, if somebody waits for it
	// tight says that there is no room for what is kept; committed that none of it will be
	// asked for twice; over that the call is.
	tight, committed, over bool
}

// replayed is how much of a call is kept, in bytes, before the message that is sent last. More
// leaves only if the leader reads it, and then the call has begun: what nobody reads fills the
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

// read has another reading count, or none. Those that wait are told. The caller holds mu.
func (r *replay) read(by *reading) {
	r.reader = by
	r.tell()
}

// tell wakes those that wait. The caller holds mu.
func (r *replay) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
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
			g.next++
			f.Data = g.hand(at)
			g.last = f.Data.Len()
			g.given += g.last
			return nil
		case g.end != nil:
			return g.end
		case g.receiving:
			g.wait()
		case g.receive(f):
			return nil
		}
	}
}

// receive receives one message from the caller. It is true if that is in f, else it was kept
// or the end has come. The caller holds mu, which is given up meanwhile.
func (g *reading) receive(f *rawframe.Frame) bool {
	var in rawframe.Frame
	g.receiving = true
	g.mu.Unlock()
	err := g.ServerStream.RecvMsg(&in)
	g.mu.Lock()
	g.receiving = false
	g.tell()
	switch {
	case err != nil:
		g.end = err
	case g.over:
		in.Free()
	case g.committed && g.reader == g:
		g.first++
		g.next++
		f.Data = in.Take()
		return true
	default:
		g.keep(in)
	}
	return false
}

// keep appends a message. One for which there is no room goes to the reader at once. A call that
// waits has none, and must not hold it: then the call goes nowhere. The caller holds mu.
func (r *replay) keep(f rawframe.Frame) {
	r.kept = append(r.kept, f)
	if r.committed {
		return // it is about to be taken
	}
	n := f.Data.Len()
	if !r.lobby.hold(r.from, n) {
		r.tight = true
		if r.reader == nil { // the call waits: this is what somebody was still receiving
			r.kept[len(r.kept)-1].Free()
			r.kept, r.end = r.kept[:len(r.kept)-1], errNoRoom
		}
		return
	}
	r.size += n
}

// hand returns the kept message at an index. The caller holds mu.
func (r *replay) hand(at int) (data mem.BufferSlice) {
	if r.committed { // then at is 0
		data, r.kept, r.first = r.kept[0].Take(), r.kept[1:], r.first+1
		return data
	}
	data = r.kept[at].Data
	data.Ref()
	return data
}

// wait blocks until somebody's receive has ended, or another reading counts. The caller holds
// mu, which is given up meanwhile.
func (r *replay) wait() {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	changed := r.changed
	r.mu.Unlock()
	<-changed // at the latest when the call ends, and the stream with it
	r.mu.Lock()
}

// fill receives the only message of a call that has one, so that the next reading need not
// wait for the caller.
func (g *reading) fill() error {
	var f rawframe.Frame
	defer f.Free()
	return only(g, &f)
}

// sent notes that what was read is on its way: where there was no room to keep it, or the
// leader must have read some of it, that is the end of its second chance.
func (g *reading) sent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (g.tight || g.given-g.last > replayed) && g.reader == g {
		g.commitLocked()
	}
}

// commit says that nothing which was received will be asked for again. It is true the first
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
	for r.first < r.reader.next {
		r.kept[0].Free()
		r.kept, r.first = r.kept[1:], r.first+1
	}
	r.release()
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

// complete reports whether the caller has said all.
func (r *replay) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end != nil
}

// crowded reports whether there was no room for what came while the call waited.
func (r *replay) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Is(r.end, errNoRoom)
}

// roomy reports whether there is room to wait with what was received.
func (r *replay) roomy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.tight
}

// drop frees what nobody will receive any more.
func (r *replay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.read(nil)
	for i := range r.kept {
		r.kept[i].Free()
	}
	r.kept = nil
	r.release()
}

// release gives the room back. The caller holds mu.
func (r *replay) release() {
	if r.size > 0 {
		r.lobby.release(r.from, r.size)
		r.size = 0
	}
}
