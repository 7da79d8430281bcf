package watch

import (
	"context"
	"errors"
	"fmt"
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
	errStale  = fmt.Errorf("%w: the watch missed a change", eldest.ErrSilent)
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
	// Probe gives the read by which to check that the stream is not deaf, and
	// Confirms reports whether its answer agrees with the changes so far. Both
	// nil: no rechecks.
	Probe    func() clientv3.Op
	Confirms func(answer clientv3.OpResponse) bool
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
		case permanent(ctx, err):
			return err
		}
		t.Known = 0
		if t.Interrupted != nil {
			t.Interrupted(err)
		}
		if f.inPlace {
			failures = 0
		}
		if err := retry.Sleep(ctx, s.Backoff(failures)); err != nil {
			return err
		}
	}
}

// permanent reports whether following again cannot help. Compaction can be
// helped: the next snapshot starts behind it.
func permanent(ctx context.Context, err error) bool {
	return err != nil && rpcerr.Permanent(ctx, err) && !rpcerr.Compacted(err)
}

// following is one watch, from its opening to its interruption.
//
// Invariant: the target knows everything up to revision, and nothing after it.
type following struct {
	source   *Source
	target   Target
	revision int64
	inPlace  bool
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
	f.inPlace = true
	return f.consume(ctx, o)
}

// consume hands changes over until the watch ends or turns out to be deaf.
// Rechecks run beside it, so that a slow one delays no change.
func (f *following) consume(ctx context.Context, o *opened) error {
	probing, stop := context.WithCancel(ctx)
	r := newRecheck(f)
	defer r.wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case resp, ok := <-o.events:
			if !ok {
				return errEnded
			}
			if err := resp.Err(); err != nil {
				return err
			}
			if f.change(resp.Events) {
				return errEnough
			}
		case <-r.due:
			r.start(probing)
		case answer := <-r.answers:
			if err := r.judge(answer); err != nil {
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

// recheck asks etcd, now and then, whether the stream still tells everything.
type recheck struct {
	f       *following
	timer   *time.Timer
	due     <-chan time.Time
	answers chan answer
	running bool
	suspect bool // the last answer contradicted the stream
}

type answer struct {
	resp clientv3.OpResponse
	err  error
}

func newRecheck(f *following) *recheck {
	r := &recheck{f: f, answers: make(chan answer, 1)}
	if f.target.Probe != nil && f.source.Recheck > 0 {
		r.timer = time.NewTimer(retry.Spread(f.source.Recheck, f.source.Recheck/10))
		r.due = r.timer.C
	}
	return r
}

func (r *recheck) start(ctx context.Context) {
	op := r.f.target.Probe()
	r.running = true
	go func() {
		resp, err := r.f.source.ask(ctx, r.f.source.patience(), op)
		r.answers <- answer{resp, err}
	}()
}

// judge takes an answer in. One that contradicts the stream is asked again after
// a moment: what the stream had under way has arrived by then.
func (r *recheck) judge(a answer) error {
	r.running = false
	if a.err != nil {
		return a.err
	}
	next := r.f.source.Recheck
	switch confirmed := r.f.target.Confirms(a.resp); {
	case confirmed:
		r.suspect = false
	case r.suspect:
		return errStale
	default:
		r.suspect = true
		next = min(next, r.f.source.Timeout)
	}
	r.timer.Reset(retry.Spread(next, next/10))
	return nil
}

// wait ends the recheck; its context has ended.
func (r *recheck) wait() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.running {
		<-r.answers
	}
}
