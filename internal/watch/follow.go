package watch

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

var (
	errEnded = errors.New("the watch ended without a reason")
	// errEnough travels from a target that has seen enough up to Follow.
	errEnough = errors.New("enough")
)

// Target is what Follow follows, and who is told. The functions are called one
// at a time, on the goroutine of Follow; those that return enough end Follow.
type Target struct {
	// Key and End are the range as etcd takes it; End "" means the one key.
	Key, End string
	// Deletions says that only deletions matter: puts are not delivered, and
	// snapshots come without values (and without lease IDs).
	Deletions bool
	// Known, if positive, is a revision at which the caller knows the range: the
	// first watch then starts right after it and takes no snapshot. It may be
	// told of the first changes up to 100 ms late (see the package comment).
	Known int64
	// Snapshot is given the range as it was at resp.Header.Revision: at the
	// start and after each interruption.
	Snapshot func(resp *clientv3.GetResponse) (enough bool)
	// Change is given all changes made at one revision, which is greater than
	// that of the last snapshot and of every change before.
	Change func(revision int64, events []*clientv3.Event) (enough bool)
	// Header is given what etcd says of itself with each change, right before Change. It
	// may be nil; what it is given must not be changed.
	Header func(*etcdserverpb.ResponseHeader)
	// Interrupted is told why the picture is no longer kept up. The next call is
	// Snapshot. May be nil.
	Interrupted func(reason error)
	// Probe gives a read by which to check that the stream is not deaf, and a
	// function that tells whether its answer agrees with the changes so far. The
	// function may be called again, when more changes have come. nil: no rechecks.
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
	f := following{source: s, target: t}
	_, err := f.follow(ctx)
	return err
}

// follow does the work of Follow; release closes the watch that stayed open, if any.
func (f *following) follow(ctx context.Context) (release context.CancelFunc, err error) {
	s := f.source
	for failures := 0; ; failures++ {
		f.revision, f.inPlace = f.target.Known, time.Time{}
		o, err := f.start(ctx)
		release = func() {}
		if o != nil {
			release = o.close
		}
		if err == nil {
			// Not from within start: most goroutines here spend their lives waiting for
			// a change, and each frame below them is memory that they keep.
			f.inPlace = time.Now()
			err = f.consume(ctx, o)
		}
		if errors.Is(err, errEnough) {
			return release, nil
		}
		release()
		switch {
		case ctx.Err() != nil:
			return release, context.Cause(ctx)
		case s.final(ctx, err):
			return release, err
		}
		f.target.Known = 0
		if s.Interrupted != nil {
			s.Interrupted(f.target.Key, err)
		}
		if f.target.Interrupted != nil {
			f.target.Interrupted(err)
		}
		if !f.inPlace.IsZero() && time.Since(f.inPlace) > steady {
			failures = 0
		}
		if err := retry.Sleep(ctx, s.Backoff(failures)); err != nil {
			return release, err
		}
	}
}

// steady is how long a watch must have been in place for its end to be no reason
// for a longer pause: a server that ends each watch at once is not to be hammered.
const steady = time.Second

// final reports whether following again cannot help. A refusal to a read is final, for ask
// has asked often enough. That to a watch is not.
func (s *Source) final(ctx context.Context, err error) bool {
	var ended *endedError
	return errors.Is(err, eldest.ErrClosed) || rpcerr.ClientClosed(ctx, s.KV, err) ||
		rpcerr.Refused(err) && !errors.As(err, &ended)
}

// following is the work of one Follow: one watch after the other, each from its
// opening to its interruption.
//
// Invariant: while a watch is consumed, the target knows everything up to revision,
// and nothing after it.
type following struct {
	source   *Source
	target   Target
	revision int64
	inPlace  time.Time
	// refused is since when each watch was refused, although reads are answered; zero if the
	// last one was not.
	refused time.Time
}

// start opens the watch and hands the first picture over. The caller closes what is
// opened, on errors too.
func (f *following) start(ctx context.Context) (*opened, error) {
	var span []clientv3.OpOption
	if f.target.End != "" {
		span = append(span, clientv3.WithRange(f.target.End))
	}
	span = span[:len(span):len(span)]
	start, read := span, span
	if f.target.Known > 0 {
		start = append(start, clientv3.WithRev(f.target.Known+1))
	}
	if f.target.Deletions {
		start = append(start, clientv3.WithFilterPut())
		read = append(read, clientv3.WithKeysOnly())
	}
	o, err := f.source.open(ctx, f.target.Key, start...)
	var none *noWatchError
	var ended *endedError
	refused := f.refused
	f.refused = time.Time{}
	switch {
	case errors.As(err, &none):
		// Is the stream at fault, or all of etcd away? Only in the first case does
		// another stream help; in the second each would be one more to come back. And
		// where something on the way lets all streams hang, asking now and then must do:
		// a waiter that is never told would hold up the whole queue.
		if unanswered := f.snapshot(ctx, read); unanswered != nil {
			return nil, unanswered
		}
		f.source.distrust(none.lane)
	case errors.As(err, &ended) && rpcerr.Refused(err) && !rpcerr.Compacted(err):
		// By a balancer on the way, or by the member's own copy of who may what, which may
		// lag: permission was granted just now, or the member was cut off. All of etcd is
		// asked, by a read for which the same permission is needed, and the target knows the
		// answer meanwhile.
		if unanswered := f.snapshot(ctx, read); unanswered != nil {
			return nil, unanswered
		}
		if refused.IsZero() {
			refused = time.Now()
		}
		if time.Since(refused) > ask.Insistent {
			return nil, ended.error
		}
		f.refused = refused
	}
	if err != nil {
		return nil, err
	}
	if f.target.Known == 0 {
		// Linearizable, so not older than the revision at which the watch was
		// put in place: nothing can fall between the two.
		err = f.snapshot(ctx, read)
	}
	return o, err
}

// snapshot reads the range and hands it over.
func (f *following) snapshot(ctx context.Context, read []clientv3.OpOption) error {
	answer, err := f.source.ask(ctx, f.source.patience(), clientv3.OpGet(f.target.Key, read...))
	if err != nil {
		return err
	}
	f.revision = answer.Get().Header.Revision
	if f.target.Snapshot(answer.Get()) {
		return errEnough
	}
	return nil
}

// consume hands changes over until the watch ends or turns out to be deaf.
// Rechecks run beside it, so that a slow one delays no change.
func (f *following) consume(ctx context.Context, o *opened) error {
	r := newRecheck(f.source, f.target.Probe)
	defer r.stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case resp, ok := <-o.events:
			if err := f.received(o, &resp, ok); err != nil {
				return err
			}
		case <-r.due():
			r.ask(ctx, f.revision)
		case a := <-r.answers:
			r.over()
			// What has come by now is taken in before: a process that was stopped finds
			// both here, and must not take a stream that was waiting for one that is deaf.
			if err := f.takeIn(o); err != nil {
				return err
			}
			if err := r.judge(a); err != nil {
				f.source.distrust(o.lane)
				return err
			}
		}
	}
}

// takeIn takes in what the watch has delivered so far.
func (f *following) takeIn(o *opened) error {
	for {
		select {
		case resp, ok := <-o.events:
			if err := f.received(o, &resp, ok); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// received takes in what the watch delivers; ok is false at its end.
func (f *following) received(o *opened, resp *clientv3.WatchResponse, ok bool) error {
	if !ok {
		return errEnded
	}
	if err := resp.Err(); err != nil {
		return f.source.ended(o.lane, err)
	}
	if f.target.Header != nil {
		f.target.Header(resp.Header)
	}
	if f.change(resp.Events) {
		return errEnough
	}
	return nil
}

// change hands over what is new among events, revision by revision.
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
