package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Change is what a watch reports.
type Change struct {
	// Began, if positive, says that etcd has put the watch in place, and is all that the change
	// says: the watch reports all that was done after this revision. It is the first report.
	Began int64
	// Revision is the etcd revision of the change.
	Revision int64
	// Put is the key as it was written; nil: it was deleted.
	Put *mvccpb.KeyValue
	// Err says that the watch has ended, and why: a RefusedError, or the end of the stream,
	// or that it could not be opened. Nothing is reported after it. Watch the key again, and
	// read it when that watch has begun.
	Err error
}

// RefusedError is the end of one watch: etcd has refused or ended it, and goes on with the others.
type RefusedError struct{ error }

// Unwrap returns etcd's error.
func (e *RefusedError) Unwrap() error { return e.error }

// errSlow ends a stream on which watches are not put in place.
var errSlow = errors.New("etcd does not put the watch in place")

// Config is what a Stream needs.
type Config struct {
	// Open opens a stream that ends with ctx.
	Open func(ctx context.Context) (pb.Watch_WatchClient, error)
	// Revision asks a majority for the present revision, by a read of a key that is watched;
	// see check.go. nil: never asked.
	Revision func(ctx context.Context, key string) (int64, error)
	// Check is the time between two checks of a stream, and Patience how long one may take, and
	// the opening of a stream, and of a watch.
	Check, Patience time.Duration
	// Backoff gives the pauses between attempts to open a stream.
	Backoff retry.Backoff
}

// Stream is the watches of one client. Made by New, ended by Close. All methods are safe
// for concurrent use.
type Stream struct {
	cfg  Config
	ctx  context.Context //nolint:containedctx // the stream's life
	end  context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	watches map[*Watch]struct{}
	newest  int64 // the newest revision that the stream has shown
	started bool
	out     *sender
	// asked are the watches that etcd was asked for and has not answered yet, in the order of its
	// answers; slow ends the stream where one takes too long. placed are those that are in place, by
	// the IDs that etcd, or a proxy of it, has given them.
	asked  []*Watch
	slow   *time.Timer
	placed map[int64]*Watch
}

// Watch is one key that is watched.
type Watch struct {
	stream *Stream
	id     int64 // if it is placed
	key    string
	puts   bool
	from   int64
	report func(Change)
}

// New makes a stream. Nothing is opened before the first watch.
func New(cfg Config) *Stream {
	s := &Stream{cfg: cfg, watches: make(map[*Watch]struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all watches without telling them, and blocks until no report is running.
func (s *Stream) Close() {
	s.end()
	s.done.Wait()
}

// Watch reports each deletion of a key, and each put if those are wanted, once, in order, until
// the watch ends: from a revision on, or, if that is 0, from now on. It does not block. Where the
// store has moved on since the revision etcd reports the first changes up to 100 ms late. report
// is called by the stream's goroutine: it must return soon, and may call Watch and Stop.
func (s *Stream) Watch(key string, puts bool, from int64, report func(Change)) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Watch{stream: s, key: key, puts: puts, from: from, report: report}
	s.watches[w] = struct{}{}
	if !s.started {
		s.started = true
		s.done.Go(s.run)
	}
	s.ask(w)
	return w
}

// Stop ends the watch. A report that is under way goes on, and may begin just now.
func (w *Watch) Stop() {
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
	if s.placed[w.id] == w {
		s.cancel(w.id) // else when it is placed
	}
}

// cancel has etcd end a watch. The caller holds the mutex.
func (s *Stream) cancel(id int64) {
	delete(s.placed, id)
	s.out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

// ask asks etcd for a watch, if a stream is open; else the next one begins with it. The caller
// holds the mutex.
func (s *Stream) ask(w *Watch) {
	if s.out == nil {
		return
	}
	r := &pb.WatchCreateRequest{Key: []byte(w.key), StartRevision: w.from}
	if !w.puts {
		r.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}
	}
	s.out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
	if s.asked = append(s.asked, w); len(s.asked) == 1 {
		s.slow.Reset(s.cfg.Patience)
	}
}

// run keeps a stream open until Close.
func (s *Stream) run() {
	for failures := 0; s.ctx.Err() == nil; failures++ {
		opened := time.Now()
		err := s.once()
		if s.ctx.Err() != nil {
			return
		}
		s.interrupted(err)
		if time.Since(opened) > steady {
			failures = 0
		}
		if retry.Sleep(s.ctx, s.cfg.Backoff(failures)) != nil {
			return
		}
	}
}

// steady is how long a stream must have been open for its end to be no reason for a longer
// pause.
const steady = time.Second

// interrupted ends all watches. Those that begin from now on wait for the next stream.
func (s *Stream) interrupted(reason error) {
	s.mu.Lock()
	s.out, s.asked, s.placed, s.newest = nil, nil, nil, 0
	ended := s.watches
	s.watches = make(map[*Watch]struct{})
	s.mu.Unlock()
	for w := range ended {
		w.report(Change{Err: reason})
	}
}

// once opens a stream, puts the watches that there are on it, and serves it until it ends.
func (s *Stream) once() error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(s.ctx))
	defer cancel(nil)
	slow := time.AfterFunc(s.cfg.Patience, func() { cancel(errSlow) })
	defer slow.Stop()
	opened, err := s.cfg.Open(ctx)
	if err != nil {
		return because(ctx, err)
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	s.mu.Lock()
	out := newSender()
	s.out, s.slow, s.placed = out, slow, make(map[int64]*Watch)
	slow.Stop()
	for w := range s.watches {
		s.ask(w)
	}
	s.mu.Unlock()
	parts.Go(func() { cancel(out.run(ctx, opened)) })
	parts.Go(func() { cancel(s.check(ctx)) })
	for {
		resp, err := opened.Recv()
		if err == nil {
			err = s.received(resp)
		}
		if err != nil {
			return because(ctx, err)
		}
	}
}

// because returns why a stream ended that returned err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// received serves one message. An error ends the stream: it keeps the token with which it was
// opened, and once that has expired nothing can be added.
func (s *Stream) received(resp *pb.WatchResponse) error {
	w := s.addressee(resp)
	if resp.Canceled {
		err := refusal(resp)
		if rpcerr.Is(err, rpctypes.ErrInvalidAuthToken) || rpcerr.Is(err, rpctypes.ErrAuthOldRevision) {
			return fmt.Errorf("a new stream is needed: %w", err)
		}
		if w != nil {
			w.Stop()
			w.report(Change{Err: &RefusedError{err}})
		}
		return nil
	}
	if w == nil {
		return nil
	}
	if resp.Created {
		began := resp.Header.GetRevision()
		if w.from > 0 {
			began = w.from - 1
		}
		w.report(Change{Began: began})
	}
	for _, e := range resp.Events {
		c := Change{Revision: e.Kv.ModRevision}
		if e.Type == mvccpb.PUT {
			c.Put = e.Kv
		}
		w.report(c)
	}
	return nil
}

// refusal is the error that etcd gave as the reason for which it ended a watch.
func refusal(resp *pb.WatchResponse) error {
	if resp.CompactRevision > 0 {
		return rpctypes.ErrCompacted
	}
	text := errors.New(resp.CancelReason)
	if err := rpcerr.Restore(rpctypes.Error(text)); !errors.Is(err, text) {
		return err
	}
	return status.Error(codes.FailedPrecondition, resp.CancelReason)
}

// addressee takes notice of a message, and returns the watch that it is for; nil: that was
// stopped meanwhile, or it is about the stream.
func (s *Stream) addressee(resp *pb.WatchResponse) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, resp.Header.GetRevision())
	if !resp.Created || len(s.asked) == 0 {
		return s.placed[resp.WatchId]
	}
	w := s.asked[0]
	s.asked = s.asked[1:]
	if s.slow.Stop(); len(s.asked) > 0 {
		s.slow.Reset(s.cfg.Patience)
	}
	_, wanted := s.watches[w]
	switch {
	case resp.Canceled: // one that is refused has no ID
	case wanted:
		w.id = resp.WatchId
		s.placed[w.id] = w
	default:
		s.cancel(resp.WatchId)
	}
	if !wanted {
		return nil
	}
	return w
}

// state returns a key that is watched, if any is, and the newest revision that the stream has shown.
func (s *Stream) state() (key string, newest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		return w.key, s.newest
	}
	return "", s.newest
}
