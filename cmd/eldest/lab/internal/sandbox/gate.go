package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// message is what a gate must know of a message.
type message struct {
	id int64
	at time.Time // when it was sent
	// kind is the method and the kind, as in "Txn answer".
	kind string
	// reply means that etcd sends it. answer is the answer to a request that may have changed
	// something, and not only renewed a lease. end is the end of a call.
	reply, answer, end bool

	// The tap that it comes from uses these.
	tap  *tap
	call int
	told bool // that it is lost
}

// settings are what is wrong with a participant's network, and what is held. The zero value passes
// everything on.
type settings struct {
	cut         string // "", both, requests or replies
	delay       time.Duration
	loseReply   bool
	hold        bool
	breakpoints []string
}

func (s settings) cuts(m message) bool {
	return s.cut == bothWays || s.cut == replies && m.reply || s.cut == requests && !m.reply
}

func (s settings) holds(m message) bool { return s.hold || slices.Contains(s.breakpoints, m.kind) }

// The directions of a cut.
const (
	bothWays = "both"
	requests = "requests"
	replies  = "replies"
)

// gate decides when each message of a participant is passed on, and whether. A message is late, then
// waits to be released, and then it arrives or is lost.
type gate struct {
	// tell reports what happens to a message. tear is called, after that, when one is lost and its call
	// goes on. spent is called when the reply that is to be lost is lost. None may call the gate.
	tell  func(feed.Type, message)
	tear  func(message)
	spent func()

	mu      sync.Mutex
	set     settings
	held    []*held       // in the order in which they came
	changed chan struct{} // closed and replaced at each change of set
}

// held is a message that waits for the user.
type held struct {
	message
	decided chan bool     // has a value once it is decided whether it is passed on
	over    chan struct{} // closed when that was reported
}

func newGate(tell func(feed.Type, message), tear func(message), spent func()) *gate {
	return &gate{tell: tell, tear: tear, spent: spent, changed: make(chan struct{})}
}

// settings returns the present settings.
func (g *gate) settings() settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.set
	s.breakpoints = slices.Clone(s.breakpoints)
	return s
}

// change changes the settings. What need not be held any more is released, in its order, and calls
// that have lost a message in a direction that is healed end.
func (g *gate) change(change func(*settings)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.set)
	close(g.changed)
	g.changed = make(chan struct{})
	g.held = slices.DeleteFunc(g.held, func(h *held) bool {
		if g.set.holds(h.message) {
			return false
		}
		h.decided <- true
		return true
	})
}

// decide takes the oldest held message that fits, and has it passed on or lost. It returns nil if
// there is none.
func (g *gate) decide(fits func(message) bool, pass bool) *held {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.held, func(h *held) bool { return fits(h.message) })
	if i < 0 {
		return nil
	}
	h := g.held[i]
	g.held = slices.Delete(g.held, i, i+1)
	h.decided <- pass
	return h
}

// pass blocks until it is decided whether a message is passed on, or its call ends, and returns the
// decision. If the message is lost because of a cut, pass blocks until the cut is healed: the call
// does not end before that.
func (g *gate) pass(ctx context.Context, m message) bool {
	if m.end && ctx.Err() != nil { // the client, or a message that was lost, has ended the call
		g.tell(feed.Delivered, m)
		return true
	}
	arrives, over := g.late(ctx, m), func() {}
	if arrives {
		arrives, over = g.hold(ctx, m)
	}
	arrives = arrives && !g.loses(m)
	cut, _ := g.cut(m)
	if arrives && !cut {
		g.tell(feed.Delivered, m)
		over()
		return true
	}
	g.tell(feed.Lost, m)
	over()
	if arrives {
		g.tear(m)
		g.silence(ctx, m)
	}
	return false
}

// late blocks until a message is as late as messages are, and reports whether the call lasts. The
// time for which it has waited for the messages before it counts.
func (g *gate) late(ctx context.Context, m message) bool {
	for ctx.Err() == nil {
		g.mu.Lock()
		left, changed := g.set.delay-time.Since(m.at), g.changed
		g.mu.Unlock()
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// hold blocks while a message waits for the user, if it has to, and reports whether it is passed on.
// over must be called when that was reported.
func (g *gate) hold(ctx context.Context, m message) (pass bool, over func()) {
	g.mu.Lock()
	if !g.set.holds(m) {
		g.mu.Unlock()
		return true, func() {}
	}
	h := &held{message: m, decided: make(chan bool, 1), over: make(chan struct{})}
	g.held = append(g.held, h)
	g.tell(feed.Held, m) // before it can be released
	g.mu.Unlock()
	over = func() { close(h.over) }
	select {
	case pass = <-h.decided:
		return pass, over
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = slices.DeleteFunc(g.held, func(other *held) bool { return other == h })
	return false, over
}

// loses reports whether a message is the reply that is to be lost.
func (g *gate) loses(m message) bool {
	g.mu.Lock()
	lost := g.set.loseReply && m.answer
	if lost {
		g.set.loseReply = false
	}
	g.mu.Unlock()
	if lost {
		g.spent()
	}
	return lost
}

// cut reports whether a message is lost because of a cut, and returns a channel that is closed when
// the settings have changed.
func (g *gate) cut(m message) (cut bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.set.cuts(m), g.changed
}

// silence blocks until messages of this direction arrive again, or the call ends.
func (g *gate) silence(ctx context.Context, m message) {
	for cut, changed := g.cut(m); cut; cut, changed = g.cut(m) {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
