package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/stream"
)

// errEnough is returned up to Follow when the target has seen enough.
var errEnough = errors.New("enough")

// Target is the range that Follow follows, and the functions that it calls. They are called one at
// a time, on the goroutine of Follow; those that return enough end Follow.
type Target struct {
	// Key and End are the range as etcd takes it; End "" means the one key.
	Key, End string
	// Snapshot receives the range as it was at resp.Header.Revision: at the start and after each
	// interruption.
	Snapshot func(resp *clientv3.GetResponse) (enough bool)
	// Change receives all changes of one revision, which is greater than that of the last snapshot
	// and of every earlier change.
	Change func(revision int64, events []*clientv3.Event) (enough bool)
	// Header receives etcd's response header of each change, right before Change. It may be nil;
	// the header must not be changed.
	Header func(*etcdserverpb.ResponseHeader)
	// Interrupted is called with the reason why changes are no longer reported. The next call is
	// Snapshot. May be nil.
	Interrupted func(reason error)
	// Waiting is how many events may wait while a function of the target runs. If there are more, they
	// are dropped, and that is an interruption. 0 means no limit: the functions do not block.
	Waiting int
	// Probe returns a read with which to check that the stream still delivers changes, and a
	// function that reports whether the answer of the read agrees with the changes so far. The
	// function may be called again, after more changes. nil: the stream is checked as a whole.
	Probe func() (read clientv3.Op, confirmed func(answer clientv3.OpResponse) bool)
	// Partial is true if the answer does not show every change: the stream is checked as a whole, too.
	Partial bool
}

// Follow keeps a target up to date until ctx ends (it returns the cause), the target has seen
// enough (nil), etcd refuses permanently, for example because a permission is missing (that error),
// or the client was closed (an error that wraps eldest.ErrClosed). Only the answer of a read is
// final: the end or the refusal of a watch is just a reason to read.
//
// When the target has seen enough, its watch stays open until ctx ends, which the caller must
// ensure. Cancelling the watch at once would delay the request with which most callers react to
// what they have seen: both go through the same client to the same member.
func (s *Source) Follow(ctx context.Context, t Target) error {
	on := s.Stream()
	f := following{source: s, target: t, stream: on.Stream}
	leave := func() {
		if f.watch != nil {
			f.watch.Stop()
		}
		on.Release()
	}
	enough := false
	defer func() { // also if a function of the target panics
		if enough {
			context.AfterFunc(ctx, leave)
		} else {
			leave()
		}
	}()
	err := f.follow(ctx)
	enough = err == nil
	return err
}

// steady is how long a watch must have been in place so that its end does not lengthen the next
// pause. A server that ends each watch at once must not be flooded with requests.
const steady = time.Second

// following is the work of one Follow: one watch after the other, each from its opening to its
// interruption.
//
// Invariant: while a watch is consumed, the target has received everything up to revision, and
// nothing after it.
type following struct {
	source   *Source
	target   Target
	stream   *stream.Stream
	watch    *stream.Watch
	news     *inbox // of the watch
	revision int64
	inPlace  time.Time // since when the watch was in place; zero: it never was
	// refused is since when each watch was refused, although reads are answered; zero if the
	// last one was not.
	refused time.Time
}

// follow does the work. It leaves the last watch open.
func (f *following) follow(ctx context.Context) error {
	s := f.source
	for failures := 0; ctx.Err() == nil; failures++ {
		f.inPlace, f.news = time.Time{}, newInbox(f.target.Waiting)
		f.watch = f.stream.Watch(stream.Request{Key: f.target.Key, End: f.target.End, Checked: f.target.Probe != nil && !f.target.Partial}, f.news.put)
		err := f.start(ctx)
		if err == nil {
			f.inPlace = time.Now()
			err = f.consume(ctx)
		}
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return err
		}
		f.watch.Stop()
		if s.Interrupted != nil {
			s.Interrupted(f.target.Key, err)
		}
		if f.target.Interrupted != nil {
			f.target.Interrupted(err)
		}
		if !f.inPlace.IsZero() && time.Since(f.inPlace) > steady {
			failures = 0
		}
		_ = retry.Sleep(ctx, s.Backoff(failures))
	}
	return context.Cause(ctx)
}

// final reports whether following again cannot help. The refusal of a read is final, because ask
// has repeated the read often enough, and so is a closed client, which ask reports. The end or the
// refusal of a watch is not: a proxy may cancel a watch, which looks like a closed client. Nor is the
// end of the stream: a balancer may have refused it, or the reason is the refusal of a read for another
// target, which shares the stream.
func final(err error) bool {
	var refused *stream.RefusedError
	var ended *stream.EndedError
	if errors.As(err, &refused) || errors.As(err, &ended) {
		return false
	}
	return errors.Is(err, eldest.ErrClosed) || rpcerr.Refused(err)
}

// start waits until the watch is in place, and then hands the first snapshot over. The snapshot is
// linearizable, so it is not older than the revision at which the watch was put in place. No change
// is missed between the two.
func (f *following) start(ctx context.Context) error {
	var first stream.Change
	select {
	case <-f.news.ready:
		first = f.news.take()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var refused *stream.RefusedError
	if first.Err == nil || !errors.As(first.Err, &refused) || rpcerr.Compacted(first.Err) {
		f.refused = time.Time{}
		if err := f.snapshot(ctx); err != nil {
			return err
		}
		return first.Err
	}
	// The refusal may come from a balancer, or from a member whose copy of the permissions lags:
	// permission was granted just now, or the member was partitioned. A quorum is read, which needs
	// the same permission, and the target receives the answer meanwhile.
	if err := f.snapshot(ctx); err != nil {
		return err
	}
	if !rpcerr.Refused(first.Err) {
		return first.Err
	}
	if f.refused.IsZero() {
		f.refused = time.Now()
	}
	if time.Since(f.refused) > retryrpc.Insistent {
		return refused.Unwrap()
	}
	return first.Err
}

// snapshot reads the range and hands it over.
func (f *following) snapshot(ctx context.Context) error {
	var span []clientv3.OpOption
	if f.target.End != "" {
		span = append(span, clientv3.WithRange(f.target.End))
	}
	answer, err := f.source.ask(ctx, f.source.patience(), clientv3.OpGet(f.target.Key, span...))
	if err != nil {
		return err
	}
	f.revision = answer.Get().Header.Revision
	if f.target.Snapshot(answer.Get()) {
		return errEnough
	}
	return nil
}

// consume hands changes over until the watch ends or is found not to deliver changes. WatchChecks
// run concurrently, so that a slow one delays no change.
func (f *following) consume(ctx context.Context) error {
	r := newCheck(f.source, f.target.Probe)
	defer r.stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.news.ready:
			if err := f.received(f.news.take()); err != nil {
				return err
			}
		case <-r.due():
			r.ask(ctx, f.revision)
		case a := <-r.answers:
			r.over()
			// Changes that have arrived are handled first. A process that was stopped finds both
			// here, and must not take a stream with waiting changes for one that delivers nothing.
			if err := f.takeIn(); err != nil {
				return err
			}
			if err := r.judge(a); err != nil {
				if !final(err) { // a refusal says nothing about the stream, which others share
					f.watch.Interrupt(err)
				}
				return err
			}
		}
	}
}

// takeIn handles everything that the watch has reported so far.
func (f *following) takeIn() error {
	for {
		select {
		case <-f.news.ready:
			if err := f.received(f.news.take()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// received handles a report of the watch.
func (f *following) received(c stream.Change) error {
	if c.Err != nil {
		return c.Err
	}
	if f.target.Header != nil {
		f.target.Header(c.Header)
	}
	if f.change(c.Events) {
		return errEnough
	}
	return nil
}

// change hands the new events over, revision by revision.
func (f *following) change(events []*clientv3.Event) (enough bool) {
	for len(events) > 0 {
		revision, n := events[0].Kv.ModRevision, 1
		for n < len(events) && events[n].Kv.ModRevision == revision {
			n++
		}
		if revision > f.revision {
			f.revision = revision
			if f.target.Change(revision, events[:n]) {
				return true
			}
		}
		events = events[n:]
	}
	return false
}

// inbox has the reports of a watch that its follower has not taken yet: the stream never waits for
// a follower.
type inbox struct {
	limit int // of events; 0: none

	mu     sync.Mutex
	queue  []stream.Change
	events int           // in the queue
	over   bool          // the limit was exceeded: nothing is added any more
	ready  chan struct{} // holds a value while the queue is not empty
}

func newInbox(limit int) *inbox { return &inbox{limit: limit, ready: make(chan struct{}, 1)} }

func (i *inbox) put(c stream.Change) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return
	}
	idle := len(i.queue) == 0
	if i.events += len(c.Events); i.limit > 0 && i.events > i.limit {
		// The follower reads the range again, so what waits is of no use.
		i.over, i.queue = true, nil
		c = stream.Change{Err: fmt.Errorf("more than %d changes waited to be handled", i.limit)}
	}
	if i.queue = append(i.queue, c); idle {
		i.ready <- struct{}{}
	}
}

// take returns the first report. The caller has received from ready.
func (i *inbox) take() stream.Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	first := i.queue[0]
	i.events -= len(first.Events)
	if i.queue = i.queue[1:]; len(i.queue) > 0 {
		i.ready <- struct{}{}
	}
	return first
}
