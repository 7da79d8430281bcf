package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/stream"
)

// errEnough travels from a target that has seen enough up to Follow.
var errEnough = errors.New("enough")

// Target is what Follow follows, and who is told. The functions are called one
// at a time, on the goroutine of Follow; those that return enough end Follow.
type Target struct {
	// Key and End are the range as etcd takes it; End "" means the one key.
	Key, End string
	// Snapshot is given the range as it was at resp.Header.Revision: at the
	// start and after each interruption.
	Snapshot func(resp *clientv3.GetResponse) (enough bool)
	// Change is given all changes made at one revision, which is greater than
	// that of the last snapshot and of every change before.
	Change func(revision int64, events []*mvccpb.Event) (enough bool)
	// Header is given what etcd says of itself with each change, right before Change. It
	// may be nil; what it is given must not be changed.
	Header func(*etcdserverpb.ResponseHeader)
	// Interrupted is called with the reason for which the picture is no longer kept up. The next
	// call is Snapshot. May be nil.
	Interrupted func(reason error)
	// Probe gives a read by which to check that the stream is not silent, and a
	// function that reports whether its answer agrees with the changes so far. The
	// function may be called again, when more changes have come. nil: the stream is checked as a
	// whole.
	Probe func() (read clientv3.Op, confirmed func(answer clientv3.OpResponse) bool)
}

// Follow keeps a target informed until ctx ends (it returns the cause), the
// target has seen enough (nil), etcd refuses for good, for want of permission, say, or the
// client was closed (that error). The last word is that of a read: why a watch ended, or
// was refused, is no more than a reason to ask.
//
// When the target has seen enough, its watch stays open until ctx ends, which the
// caller sees to. Taking leave of etcd would delay the request with which most callers
// act on what they have seen: both go through the same client to the same member.
func (s *Source) Follow(ctx context.Context, t Target) error {
	on := s.Stream()
	f := following{source: s, target: t, stream: on.Stream}
	err := f.follow(ctx)
	leave := func() {
		if f.watch != nil {
			f.watch.Stop()
		}
		on.Release()
	}
	if err == nil {
		context.AfterFunc(ctx, leave)
		return nil
	}
	leave()
	return err
}

// steady is how long a watch must have been in place for its end to be no reason
// for a longer pause: a server that ends each watch at once is not to be hammered.
const steady = time.Second

// following is the work of one Follow: one watch after the other, each from its
// opening to its interruption.
//
// Invariant: while a watch is consumed, the target knows everything up to revision,
// and nothing after it.
type following struct {
	source   *Source
	target   Target
	stream   *stream.Stream
	watch    *stream.Watch
	news     *inbox // of the watch
	revision int64
	inPlace  time.Time // since when the watch was; zero: it never was
	// refused is since when each watch was refused, although reads are answered; zero if the
	// last one was not.
	refused time.Time
}

// follow does the work. It leaves the last watch open.
func (f *following) follow(ctx context.Context) error {
	s := f.source
	for failures := 0; ctx.Err() == nil; failures++ {
		f.inPlace, f.news = time.Time{}, newInbox()
		f.watch = f.stream.Watch(stream.Request{Key: f.target.Key, End: f.target.End, Checked: f.target.Probe != nil}, f.news.put)
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
		case s.final(ctx, err):
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

// final reports whether following again cannot help. A refusal to a read is final, for ask
// has asked often enough. That to a watch is not.
func (s *Source) final(ctx context.Context, err error) bool {
	var refused *stream.RefusedError
	return errors.Is(err, eldest.ErrClosed) || rpcerr.ClientClosed(ctx, s.KV, err) ||
		rpcerr.Refused(err) && !errors.As(err, &refused)
}

// start waits until the watch is in place, and hands the first picture over: it is linearizable, so not
// older than the revision at which the watch was put in place. Nothing can fall between the two.
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
	// By a balancer on the way, or by the member's own copy of who may what, which may
	// lag: permission was granted just now, or the member was cut off. All of etcd is
	// asked, by a read for which the same permission is needed, and the target knows the
	// answer meanwhile.
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

// consume hands changes over until the watch ends or turns out to be silent.
// WatchChecks run beside it, so that a slow one delays no change.
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
			// What has come by now is taken in before: a process that was stopped finds
			// both here, and must not take a stream that was waiting for one that is silent.
			if err := f.takeIn(); err != nil {
				return err
			}
			if err := r.judge(a); err != nil {
				f.watch.Interrupt(err)
				return err
			}
		}
	}
}

// takeIn takes in what the watch has reported so far.
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

// received takes in what the watch reports.
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

// change hands over what is new among events, revision by revision.
func (f *following) change(events []*mvccpb.Event) (enough bool) {
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

// inbox has what a watch has reported and its follower has not taken yet: the stream waits for nobody.
type inbox struct {
	mu    sync.Mutex
	queue []stream.Change
	ready chan struct{} // has one while the queue is not empty
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (i *inbox) put(c stream.Change) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue = append(i.queue, c); len(i.queue) == 1 {
		i.ready <- struct{}{}
	}
}

// take returns the first of them. ready was received from.
func (i *inbox) take() stream.Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	first := i.queue[0]
	if i.queue = i.queue[1:]; len(i.queue) > 0 {
		i.ready <- struct{}{}
	}
	return first
}
