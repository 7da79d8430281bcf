package curator

import (
	"context"
	"reflect"
	"sync"

	grpcpeer "google.golang.org/grpc/peer"
)

// backlog counts the calls that wait for a leader, or for a connection to it, and the bytes of
// messages that are held for them. Both are bounded, and one caller may have at most as much of
// either as is left for the others: one caller alone gets half, and never all.
type backlog struct {
	max usage

	mu    sync.Mutex
	all   usage
	their map[any]*usage // by caller
}

// usage is a number of calls that wait, and the bytes of messages that are held.
type usage struct{ calls, bytes int }

func newBacklog(maxCalls, maxBytes int) *backlog {
	return &backlog{max: usage{maxCalls, maxBytes}, their: make(map[any]*usage)}
}

// callerOf identifies the caller of a call by its connection. A client with many connections counts
// as many callers; Config.Listeners bound their number.
func callerOf(ctx context.Context) any {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok || p.Addr == nil || !reflect.TypeOf(p.Addr).Comparable() {
		return nil
	}
	return p.Addr
}

// enter counts one more waiting call; leave follows. It returns false if there are too many.
func (b *backlog) enter(caller any) bool { return b.change(caller, 1, 0) }

// leave ends a wait.
func (b *backlog) leave(caller any) { b.change(caller, -1, 0) }

// hold reserves the bytes; release follows. It returns false if there is no room.
func (b *backlog) hold(caller any, bytes int) bool { return b.change(caller, 0, bytes) }

// release gives bytes back.
func (b *backlog) release(caller any, bytes int) { b.change(caller, 0, -bytes) }

func (b *backlog) change(caller any, calls, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.their[caller]
	if mine == nil {
		mine = &usage{}
	}
	if calls > 0 && mine.calls+calls > b.max.calls-b.all.calls || bytes > 0 && mine.bytes+bytes > b.max.bytes-b.all.bytes {
		return false
	}
	for _, u := range []*usage{mine, &b.all} {
		u.calls += calls
		u.bytes += bytes
	}
	if *mine == (usage{}) {
		delete(b.their, caller)
	} else {
		b.their[caller] = mine
	}
	return true
}

// load returns what is used now.
func (b *backlog) load() usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}
