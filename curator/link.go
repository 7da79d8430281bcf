package curator

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// link is one connection to a leader.
type link struct {
	*grpc.ClientConn
	// calls counts those in flight.
	calls atomic.Int64
	// sending counts the messages that are being sent. One that stays long is held up: by a
	// handler that does not read, or by what is under way before it.
	sending atomic.Int64
	// retired says that no more calls begin.
	retired atomic.Bool
	// impostor says that who was reached last was not the leader.
	impostor atomic.Bool

	// life ends when the connection is given up; its cause says why.
	life    context.Context
	end     context.CancelCauseFunc
	closers *sync.WaitGroup

	mu    sync.Mutex
	timer *time.Timer
}

// done ends a call.
func (l *link) done() {
	if l.calls.Add(-1) == 0 && l.retired.Load() {
		l.giveUp(errIdle)
	}
}

// retire gives the connection up when no calls are in flight, after linger at the latest.
func (l *link) retire(reason error, linger time.Duration) {
	l.mu.Lock()
	if !l.given() && l.timer == nil {
		l.timer = time.AfterFunc(linger, func() { l.giveUp(reason) })
	}
	l.mu.Unlock()
	l.retired.Store(true) // before the look at calls, as done looks at them before this
	if l.calls.Load() == 0 || linger <= 0 {
		l.giveUp(reason)
	}
}

// giveUp has the connection closed, and calls in flight there end. Only the first reason
// counts. It does not block: where the other end reads no more, closing takes gRPC seconds.
func (l *link) giveUp(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given() {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end(reason)
	l.closers.Go(func() { _ = l.Close() }) // before anybody can take it for closed, and wait
}

// given reports whether the connection was given up.
func (l *link) given() bool { return l.life.Err() != nil }

// reason returns why the connection was given up, or nil.
func (l *link) reason() error { return context.Cause(l.life) }

var errIdle = errors.New("nobody used it any more")

// load compares connections: fewer calls are better, and any number of them is better than
// one message that is held up.
func (l *link) load() int64 {
	if l.sending.Load() > 0 {
		return l.calls.Load() + math.MaxInt32
	}
	return l.calls.Load()
}
