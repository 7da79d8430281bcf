package watch

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
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
	// Interrupted is told why the picture is no longer kept up. The next call is
	// Snapshot. May be nil.
	Interrupted func(reason error)
	// Probe gives a read by which to check that the stream is not deaf, and a
	// function that tells whether its answer agrees with the changes so far. The
	// function may be called again, when more changes have come. nil: no rechecks.
	Probe func() (read clientv3.Op, confirmed func(answer clientv3.OpResponse) bool)
}

// Follow keeps a target informed until ctx ends (it returns the cause), the
// target has seen enough (nil), or etcd refuses for good, for want of permission
// or because the client was closed (that error).
func (s *Source) Follow(ctx context.Context, t Target) error {
	for failures := 0; ; failures++ {
		f := following{source: s, target: t, revision: t.Known}
		err := f.run(ctx)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.permanent(ctx, err):
			return err
		}
		t.Known = 0
		if t.Interrupted != nil {
			t.Interrupted(err)
		}
		if !f.inPlace.IsZero() && time.Since(f.inPlace) > steady {
			failures = 0
		}
		if err := retry.Sleep(ctx, s.Backoff(failures)); err != nil {
			return err
		}
	}
}

// steady is how long a watch must have been in place for its end to be no reason
// for a longer pause: a server that ends each watch at once is not to be hammered.
const steady = time.Second

// permanent reports whether following again cannot help. Compaction can be
// helped: the next snapshot starts behind it.
func (s *Source) permanent(ctx context.Context, err error) bool {
	return errors.Is(err, eldest.ErrClosed) || rpcerr.ClientClosed(ctx, s.KV, err) ||
		rpcerr.Permanent(err) && !rpcerr.Compacted(err)
}

// following is one watch, from its opening to its interruption.
//
// Invariant: the target knows everything up to revision, and nothing after it.
type following struct {
	source   *Source
	target   Target
	revision int64
	inPlace  time.Time
}

func (f *following) run(ctx context.Context) error {
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
	if err != nil {
		return err
	}
	defer o.close()
	if f.target.Known == 0 {
		// Linearizable, so not older than the revision at which the watch was
		// put in place: nothing can fall between the two.
		answer, err := f.source.ask(ctx, f.source.patience(), clientv3.OpGet(f.target.Key, read...))
		if err != nil {
			return err
		}
		f.revision = answer.Get().Header.Revision
		if f.target.Snapshot(answer.Get()) {
			return errEnough
		}
	}
	f.inPlace = time.Now()
	return f.consume(ctx, o)
}

// consume hands changes over until the watch ends or turns out to be deaf.
// Rechecks run beside it, so that a slow one delays no change.
func (f *following) consume(ctx context.Context, o *opened) error {
	r := newRecheck(ctx, f.source, f.target.Probe)
	defer r.stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case resp, ok := <-o.events:
			if !ok {
				return errEnded
			}
			if err := resp.Err(); err != nil {
				return rpcerr.Restore(err)
			}
			if f.change(resp.Events) {
				return errEnough
			}
		case <-r.due():
			r.ask()
		case a := <-r.answers:
			if err := r.judge(a); err != nil {
				f.source.distrust(o.stream)
				return err
			}
		}
	}
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
