package curator

import (
	"context"
	"reflect"
	"sync"

	grpcpeer "google.golang.org/grpc/peer"
)

// lobby is where calls wait for a leader, or for a connection to it, and what they hold
// meanwhile. Both are bounded, and so is what one caller may have of either: as much as is
// left for the others. So one caller alone gets half, and never all.
type lobby struct {
	maxCalls, maxBytes int

	mu    sync.Mutex
	all   waiters
	their map[any]*waiters // by caller
}

// waiters are some calls that wait, and the bytes of messages that are held.
type waiters struct{ calls, bytes int }

func newLobby(maxCalls, maxBytes int) *lobby {
	return &lobby{maxCalls: maxCalls, maxBytes: maxBytes, their: make(map[any]*waiters)}
}

// callerOf names who a call comes from: a connection. A client with many has as many names;
// their number is for Config.Listener to bound.
func callerOf(ctx context.Context) any {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok || p.Addr == nil || !reflect.TypeOf(p.Addr).Comparable() {
		return nil
	}
	return p.Addr
}

// enter lets a call wait; leave follows. It is false if there are too many.
func (l *lobby) enter(caller any) bool { return l.change(caller, 1, 0) }

// leave ends a wait.
func (l *lobby) leave(caller any) { l.change(caller, -1, 0) }

// hold makes room for so many bytes; release follows. It is false if there is none.
func (l *lobby) hold(caller any, bytes int) bool { return l.change(caller, 0, bytes) }

// release gives room back.
func (l *lobby) release(caller any, bytes int) { l.change(caller, 0, -bytes) }

func (l *lobby) change(caller any, calls, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.their[caller]
	if mine == nil {
		mine = &waiters{}
	}
	if calls > 0 && mine.calls+calls > l.maxCalls-l.all.calls || bytes > 0 && mine.bytes+bytes > l.maxBytes-l.all.bytes {
		return false
	}
	for _, w := range []*waiters{mine, &l.all} {
		w.calls += calls
		w.bytes += bytes
	}
	if *mine == (waiters{}) {
		delete(l.their, caller)
	} else {
		l.their[caller] = mine
	}
	return true
}

// load returns how many calls wait, and the bytes that are held.
func (l *lobby) load() (calls, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.calls, l.all.bytes
}
