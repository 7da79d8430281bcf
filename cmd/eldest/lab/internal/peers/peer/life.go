package peer

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

// leaving bounds the orderly end of a client. What has not ended by then is left to the servers.
const leaving = 5 * time.Second

// Life is what a client has started, and what ends with it: goroutines, connections, and for example sessions.
// NewLife makes one; End must be called. Its other methods may be called from many goroutines, before End.
type Life struct {
	context.Context // ended by End
	end             context.CancelFunc
	work            sync.WaitGroup

	mu      sync.Mutex
	endings []func(context.Context)
}

// NewLife returns a life.
func NewLife() *Life {
	l := &Life{}
	l.Context, l.end = context.WithCancel(context.Background())
	return l
}

// Go runs f on a goroutine for which End waits.
func (l *Life) Go(f func()) { l.work.Go(f) }

// Every calls do at intervals, until it returns false, stop is called, or the life ends. stop waits for the last call.
func (l *Life) Every(interval time.Duration, do func(context.Context) bool) (stop func()) {
	ctx, cancel := context.WithCancel(l)
	ended := make(chan struct{})
	l.Go(func() {
		defer close(ended)
		defer cancel()
		for ticks := time.NewTicker(interval); ; {
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil || !do(ctx) {
				ticks.Stop()
				return
			}
		}
	})
	return func() { cancel(); <-ended }
}

// AtEnd makes End call f, which ends something in an orderly way, also if that has ended already.
func (l *Life) AtEnd(f func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endings = append(l.endings, f)
}

// abreast is how many functions of AtEnd are called at a time: each may send a request.
const abreast = 64

// End calls the functions of AtEnd, the newest first, so that candidates leave before the leader for which they
// wait, and for five seconds at most. Then it ends the context and all connections, and waits for all goroutines.
func (l *Life) End() {
	ctx, cancel := context.WithTimeout(l, leaving)
	defer cancel()
	var calls sync.WaitGroup
	slots := make(chan struct{}, abreast)
	for _, f := range slices.Backward(l.endings) {
		slots <- struct{}{}
		calls.Go(func() {
			f(ctx)
			<-slots
		})
	}
	calls.Wait()
	l.end()
	l.work.Wait()
}

// Dial opens a connection of a network, which is closed at the latest when the life ends.
func (l *Life) Dial(ctx context.Context, network Network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l, cancel)()
	conn, err := network.Dial(ctx, "tcp", address)
	if err == nil {
		l.Track(conn)
	}
	return conn, err
}

// Track closes a connection when the life ends.
func (l *Life) Track(conn net.Conn) { context.AfterFunc(l, func() { _ = conn.Close() }) }

// Retry calls f, with two seconds for each call, until it succeeds or ctx ends.
func Retry(ctx context.Context, f func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if ended := retry.Sleep(ctx, 20*time.Millisecond); ended != nil {
			return errors.Join(ended, err)
		}
	}
}
