package election

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
)

// Watcher returns the candidate's watcher for this tenure: its watches end with the tenure. Code
// written for a plain clientv3.Watcher can use it.
//
// Each response is checked against the clock when it arrives from etcd, as by Holds: one that
// arrives after the deadline of the tenure is not delivered, also before any timer has fired. When
// the tenure ends, for whatever reason, responses that were not received yet are discarded. Each
// channel then has one last response and is closed, whether or not its reader receives. The last
// response is Canceled, and its Err wraps eldest.ErrNotLeading and the cause of the end. A tenure
// that is suspended (lease.Heartbeat) has ended; if it is resumed, it needs new watches.
//
// Not guaranteed: that no other candidate leads when a response is received. etcd does not check it,
// as it checks a guarded operation, and a removal of the key by another client is known only when
// the event arrives. A write that depends on a response must be guarded. A response that
// arrived in time may be received at the very end of the tenure, or right after a pause of the
// process: its reader can check Holds.
//
// Watch blocks until etcd has created the watch, ctx has ended, or the tenure has. After the tenure
// it sends nothing, and the channel has the last response at once. When ctx ends during the tenure,
// the channel is closed without a last response. Everything else (options, compaction, a closed
// client) is as with the candidate's Watcher. A nil ctx is refused with eldest.ErrInvalid in the
// last response.
//
// RequestProgress requests the progress of all watches of the client whose contexts have the same
// outgoing metadata as ctx, as etcd's client does. After the tenure it sends nothing and returns the
// error of a last response. It blocks as Watch does.
//
// Close ends the watches of the returned Watcher and waits for their goroutines; the last responses
// wrap eldest.ErrClosed. Afterwards Watch and RequestProgress fail with that error. It does not
// close the candidate's Watcher. It is not required: the watches end with the tenure as well.
//
// Each watch has one goroutine, for which the candidate's Close waits.
func (l *Leadership) Watcher() clientv3.Watcher {
	w := &watcher{l: l}
	w.open, w.end = context.WithCancel(context.Background())
	return w
}

// watcher is the Watcher of a tenure.
//
// Invariant: running counts the goroutines of its watches, and so does the candidate's count. Both
// grow only under the candidate's mutex, while the candidate and the watcher are open.
type watcher struct {
	l       *Leadership
	open    context.Context // until Close
	end     context.CancelFunc
	running sync.WaitGroup
}

// Watch watches during the tenure; see Leadership.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse, 1)
	if err := w.refuses(ctx); err != nil {
		w.close(out, err)
		return out
	}
	watching, stop := w.within(ctx)
	in := w.l.c.cfg.Watcher.Watch(watching, key, opts...)
	if !w.start() {
		stop()
		w.close(out, w.over())
		return out
	}
	go func() {
		defer w.l.c.watches.Done()
		defer w.running.Done()
		defer stop()
		w.pass(watching, in, out)
	}()
	return out
}

// pass passes responses on until ctx ends or etcd's watch does, and closes out.
//
// out has room for one response and no other sender, so there is always room for the last one once
// the one before it, which has not been received yet, is discarded.
func (w *watcher) pass(ctx context.Context, in clientv3.WatchChan, out chan clientv3.WatchResponse) {
	for {
		var resp clientv3.WatchResponse
		more := false
		select {
		case resp, more = <-in:
		case <-ctx.Done():
		}
		if err := w.over(); err != nil || !more {
			w.close(out, err)
			return
		}
		select {
		case out <- resp:
		case <-ctx.Done():
		}
	}
}

// close closes a channel; if err is not nil, it is the only content.
func (w *watcher) close(out chan clientv3.WatchResponse, err error) {
	if err != nil {
		select {
		case <-out:
		default:
		}
		out <- watch.Canceled(w.l.c.failed("guarded watch", rpcerr.Opaque(err)))
	}
	close(out)
}

// RequestProgress requests a progress notification; see Leadership.Watcher.
func (w *watcher) RequestProgress(ctx context.Context) error {
	err := w.refuses(ctx)
	if err == nil {
		asking, stop := w.within(ctx)
		defer stop()
		err = w.l.c.cfg.Watcher.RequestProgress(asking)
		if ended := w.over(); err != nil && ended != nil {
			err = ended
		}
	}
	return w.l.c.failed("guarded progress request", err)
}

// Close ends the watches; see Leadership.Watcher.
func (w *watcher) Close() error {
	w.l.c.lock()
	w.end()
	w.l.c.unlock()
	w.running.Wait()
	return nil
}

// refuses returns why nothing must be sent, or nil.
func (w *watcher) refuses(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	return w.over()
}

// over returns why the watches have ended, or nil. It reads the clock.
func (w *watcher) over() error {
	if err := w.l.alive(); err != nil {
		return err
	}
	if w.open.Err() != nil {
		return fmt.Errorf("%w: the guarded watcher", eldest.ErrClosed)
	}
	return nil
}

// within returns ctx, which also ends with the tenure and with Close.
func (w *watcher) within(ctx context.Context) (context.Context, func()) {
	within, end := w.l.leading(ctx)
	detach := context.AfterFunc(w.open, end)
	return within, func() {
		detach()
		end()
	}
}

// start counts a goroutine, unless its watch has ended already.
func (w *watcher) start() bool {
	c := w.l.c
	c.lock()
	defer c.unlock()
	if c.closed || w.open.Err() != nil {
		return false
	}
	c.watches.Add(1)
	w.running.Add(1)
	return true
}
