package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/stream"
)

// Until calls report at most once, when the life has ended, with a revision at which the key was
// certainly absent or in another life. It is the revision of the deletion, unless the watch was
// interrupted at that moment. On an error (ErrOverwritten, a permanent refusal of etcd) nothing is
// known about the key. No goroutine waits. Reads, if some are needed, run on goroutines that run
// starts; they end with ctx. Until does not block, and report must not block; report may call stop.
// After stop no report begins; one that is running continues. The watch stays open until stop:
// cancelling it earlier would delay the request with which most callers react to the report.
func (s *Source) Until(ctx context.Context, on *stream.Stream, run func(func()), l Life, report func(revision int64, err error)) (stop func()) {
	u := &until{source: s, ctx: ctx, stream: on, run: run, life: l, report: report}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open()
	return u.stop
}

// Gone blocks until the life has ended, and returns what Until reports, or until ctx ends, and
// returns its cause.
func (s *Source) Gone(ctx context.Context, l Life) (int64, error) {
	on := s.Stream()
	defer on.Release()
	var reads sync.WaitGroup
	defer reads.Wait()
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		revision int64
		err      error
	}
	ended := make(chan end, 1)
	stop := s.Until(reading, on.Stream, reads.Go, l, func(revision int64, err error) { ended <- end{revision, err} })
	defer stop()
	select {
	case e := <-ended:
		return e.revision, e.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// until is one life that is watched on a stream.
//
// Invariant: the life had not ended at revision life.Known. If the watch began there, it reports
// every later end; otherwise a read of the key is under way, or due.
type until struct {
	source *Source
	ctx    context.Context // of the reads
	stream *stream.Stream
	run    func(func())
	life   Life
	report func(int64, error)

	mu       sync.Mutex // also guards life.Known
	watch    *stream.Watch
	began    int64
	reading  context.CancelFunc // nil: no read is under way
	failures int                // of reads and of the watch, in a row
	pause    *time.Timer        // before the next attempt
	refused  time.Time          // since when etcd has refused the watch, but answered reads; zero: it does not
	again    bool               // the read under way may be too old
	over     bool
}

func (u *until) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end()
	u.watch.Stop()
}

// end stops all work. The caller holds the mutex.
func (u *until) end() {
	u.over = true
	if u.reading != nil {
		u.reading()
	}
	if u.pause != nil {
		u.pause.Stop()
	}
}

// open watches the key. The caller holds the mutex.
func (u *until) open() {
	// The end of the candidate's key need not be known at once, so its watch may begin in the past.
	// The end of an older candidate's key may be a win: there a read, if one is needed, is faster
	// (see the package comment).
	var from int64
	if u.life.Lease > 0 && u.life.Known > 0 {
		from = u.life.Known + 1
	}
	u.began = 0
	// A lease can only be changed by a put. A life ends with a deletion.
	u.watch = u.stream.Watch(stream.Request{Key: u.life.Key, Deletions: u.life.Lease == 0, From: from}, u.changed)
}

// changed handles a report of the watch.
func (u *until) changed(c stream.Change) {
	u.mu.Lock()
	switch {
	case u.over:
	case c.Err != nil:
		u.interrupted(c.Err)
		return
	case c.Began > 0:
		u.began, u.failures, u.refused = c.Began, 0, time.Time{}
		if u.life.Known != u.began { // it began later; or earlier, and etcd was restored from a backup since
			u.read()
		}
	default:
		for _, e := range c.Events {
			if u.event(e) {
				return
			}
		}
	}
	u.mu.Unlock()
}

// event handles one change of the key, and reports whether the life has ended. If so, it has
// released the mutex, which the caller holds.
func (u *until) event(e *clientv3.Event) (ended bool) {
	at := e.Kv.ModRevision
	put := e.Type == mvccpb.PUT
	switch {
	case at < int64(u.life.Token), at <= u.life.Known && put && e.Kv.CreateRevision == int64(u.life.Token):
		// The change of an earlier life, or a known change: the member was behind.
	case at <= u.life.Known:
		u.read() // only possible if etcd was restored from a backup
	case !put:
		u.ended(at, nil)
		return true
	default:
		if over, err := u.life.over(e.Kv); over {
			u.ended(at, err)
			return true
		}
		u.life.Known = at
	}
	return false
}

// ended reports the end. It releases the mutex, which the caller holds.
func (u *until) ended(revision int64, err error) {
	u.end()
	u.mu.Unlock()
	u.report(revision, err)
}

// interrupted continues after the watch has ended. It releases the mutex, which the caller holds. A
// watch that was in place is replaced by another one. If no watch can be opened, the key is read
// meanwhile: a candidate that is never notified would block the whole queue.
func (u *until) interrupted(reason error) {
	var refused *stream.RefusedError
	inPlace := u.began > 0
	u.life.Known = 0
	switch {
	case !errors.As(reason, &refused) || rpcerr.Compacted(reason):
		u.open() // on the next stream, which is opened after a pause
		if !inPlace {
			u.read()
		}
	case rpcerr.Refused(reason) && !u.refused.IsZero() && time.Since(u.refused) > retryrpc.Insistent:
		u.ended(0, refused)
		return
	default:
		// The refusal may come from a balancer, or from a member whose copy of the permissions
		// lags. A quorum is read, which needs the same permission.
		u.began = 0
		if u.refused.IsZero() {
			u.refused = time.Now()
		}
		u.later(func() { u.open(); u.read() })
	}
	u.mu.Unlock()
	u.tell(reason)
}

// tell calls the hook of an interruption. The caller does not hold the mutex.
func (u *until) tell(reason error) {
	if u.source.Interrupted != nil {
		u.source.Interrupted(u.life.Key, reason)
	}
}

// later calls do after a pause. The caller holds the mutex.
func (u *until) later(do func()) {
	u.pause = time.AfterFunc(u.source.Backoff(u.failures), func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.over {
			do()
		}
	})
	u.failures++
}

// read reads the key from a quorum. The caller holds the mutex.
func (u *until) read() {
	if u.again = u.reading != nil; u.again {
		return
	}
	ctx, cancel := context.WithCancel(u.ctx)
	u.reading = cancel
	u.run(func() {
		defer cancel()
		var opts []clientv3.OpOption
		if u.life.Lease == 0 {
			opts = append(opts, clientv3.WithKeysOnly()) // which leaves the lease out
		}
		resp, err := u.source.ask(ctx, u.source.patience(), clientv3.OpGet(u.life.Key, opts...))
		u.answered(ctx, resp.Get(), err)
	})
}

// answered handles the answer of a read.
func (u *until) answered(ctx context.Context, resp *clientv3.GetResponse, err error) {
	u.mu.Lock()
	u.reading = nil
	if u.over || ctx.Err() != nil {
		u.mu.Unlock()
		return
	}
	if err != nil {
		if final(err) {
			u.ended(0, err)
			return
		}
		u.refused = time.Time{}
		u.later(u.read)
		u.mu.Unlock()
		u.tell(err)
		return
	}
	at := resp.Header.Revision
	if over, err := u.life.over(only(resp.Kvs)); over {
		u.ended(at, err)
		return
	}
	u.life.Known = at
	if u.again || u.began > at {
		u.read()
	}
	u.mu.Unlock()
}
