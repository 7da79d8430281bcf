package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Change is what a watch reports.
type Change struct {
	// Began, if positive, is the revision at which etcd has put the watch in place: the watch
	// reports all later changes. It is in the first report, which has no other field.
	Began int64
	// Events are changes, in the order of their revisions, all of one revision together; Header is
	// etcd's response header. They must not be changed.
	Events []*clientv3.Event
	Header *pb.ResponseHeader
	// Err is why the watch has ended: a RefusedError, or an EndedError. Nothing is reported after it.
	// Watch the key again, and read it when the new watch has begun.
	Err error
}

// Request is the range to watch, and how.
type Request struct {
	// Key and End are the range as etcd takes it; End "" means the one key.
	Key, End string
	// Deletions is true if puts are not reported.
	Deletions bool
	// From is the first revision whose changes are reported; 0: from now on. If the store has moved
	// on since that revision, etcd reports the first changes up to 100 ms late.
	From int64
	// Checked is true if the watcher itself checks whether the watch still reports everything, see
	// Interrupt: the stream need not be checked for it.
	Checked bool
}

// RefusedError is the end of one watch: etcd has refused or ended it, and continues with the
// others.
type RefusedError struct{ error }

// Unwrap returns etcd's error.
func (e *RefusedError) Unwrap() error { return e.error }

// EndedError is the end of the stream, or that it could not be opened. The reason may be the refusal
// of a request for another watch (see Interrupt), or that of a balancer.
type EndedError struct{ error }

// Unwrap returns the reason.
func (e *EndedError) Unwrap() error { return e.error }

// Link is one stream of etcd's Watch API, such as a pb.Watch_WatchClient.
type Link interface {
	// Send and Recv are those of a gRPC stream. If Recv returns an error with a message that
	// cancels a watch, the error is the reason for that.
	Send(r *pb.WatchRequest) error
	Recv() (*pb.WatchResponse, error)
}

// Config is what a Stream needs.
type Config struct {
	// Open opens a link that ends with ctx. last is why the previous link has ended; nil for the
	// first.
	Open func(ctx context.Context, last error) (Link, error)
	// Revision asks a majority for the present revision, by a read of a key that is watched;
	// see check.go. nil: never asked.
	Revision func(ctx context.Context, key string) (int64, error)
	// Check is the time between two checks of a stream. Patience is how long a check may take, and
	// the opening of a stream, and of a watch.
	Check, Patience time.Duration
	// Backoff gives the pauses between attempts to open a stream.
	Backoff retry.Backoff
}

// Stream has the watches of one client. Made by New, ended by Close. All methods are safe
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
	cut     context.CancelCauseFunc // ends the open link; set together with out
	// asked are the watches that were requested and not answered yet, in the order in which etcd
	// answers; slow ends the stream if an answer takes too long. placed are the watches in place,
	// by the IDs that etcd, or a proxy of it, has given them.
	asked  []*Watch
	slow   *time.Timer
	placed map[int64]*Watch
}

// Watch is one key, or range, that is watched.
type Watch struct {
	Request
	stream *Stream
	id     int64 // if it is placed
	report func(Change)
}

// New makes a stream. Nothing is opened before the first watch.
func New(cfg Config) *Stream {
	s := &Stream{cfg: cfg, watches: make(map[*Watch]struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all watches without a report, and blocks until no report is running.
func (s *Stream) Close() {
	s.end()
	s.done.Wait()
}

// Watch reports each change once, in order, until the watch ends. It does not block. report
// is called by the stream's goroutine: it must return soon, and may call Watch and Stop.
func (s *Stream) Watch(r Request, report func(Change)) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Watch{Request: r, stream: s, report: report}
	s.watches[w] = struct{}{}
	if !s.started {
		s.started = true
		s.done.Go(s.run)
	}
	s.ask(w)
	return w
}

// Stop ends the watch. A report that is running continues, and one may begin at this moment.
func (w *Watch) Stop() {
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
	if s.placed[w.id] == w {
		s.cancel(w.id) // otherwise it is cancelled when it is placed
	}
}

// Interrupt ends the link for the reason, if the watch is on it: the watch has not reported what it
// should. All watches of the link end; those that are opened again are on the next link.
func (w *Watch) Interrupt(reason error) {
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, on := s.watches[w]; on && s.out != nil {
		s.cut(reason)
	}
}

// cancel requests the end of a watch. The caller holds the mutex.
func (s *Stream) cancel(id int64) {
	delete(s.placed, id)
	s.out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

// ask requests a watch from etcd, if a stream is open; otherwise the next stream begins with it.
// The caller holds the mutex.
func (s *Stream) ask(w *Watch) {
	if s.out == nil {
		return
	}
	r := &pb.WatchCreateRequest{Key: []byte(w.Key), StartRevision: w.From}
	if w.End != "" {
		r.RangeEnd = []byte(w.End)
	}
	if w.Deletions {
		r.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}
	}
	s.out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
	if s.asked = append(s.asked, w); len(s.asked) == 1 {
		s.slow.Reset(s.cfg.Patience)
	}
}

// run keeps a stream open until Close.
func (s *Stream) run() {
	var last error
	for failures := 0; s.ctx.Err() == nil; failures++ {
		opened := time.Now()
		last = s.once(last)
		if s.ctx.Err() != nil {
			return
		}
		s.interrupted(&EndedError{last})
		if time.Since(opened) > steady {
			failures = 0
		}
		if retry.Sleep(s.ctx, s.cfg.Backoff(failures)) != nil {
			return
		}
	}
}

// steady is how long a stream must have been open so that its end does not lengthen the next pause.
const steady = time.Second

// interrupted ends all watches. Watches that begin from now on wait for the next stream.
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

// once opens a stream, puts the existing watches on it, and serves it until it ends.
func (s *Stream) once(last error) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(s.ctx))
	defer cancel(nil)
	slow := time.AfterFunc(s.cfg.Patience, func() {
		cancel(fmt.Errorf("%w: no watch within %v", eldest.ErrUnavailable, s.cfg.Patience))
	})
	defer slow.Stop()
	link, err := s.cfg.Open(ctx, last)
	if err != nil {
		return because(ctx, err)
	}
	if w, ok := link.(interface{ Wait() }); ok {
		defer w.Wait()
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	s.mu.Lock()
	out := newSender()
	s.out, s.cut, s.slow, s.placed = out, cancel, slow, make(map[int64]*Watch)
	slow.Stop()
	for w := range s.watches {
		s.ask(w)
	}
	s.mu.Unlock()
	parts.Go(func() { cancel(out.run(ctx, link)) })
	parts.Go(func() { cancel(s.check(ctx)) })
	for {
		resp, err := link.Recv()
		if resp != nil {
			err = s.received(resp, err)
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

// received handles one message. An error ends the stream: a stream keeps the token with which it
// was opened, and after the token has expired no watch can be added.
func (s *Stream) received(resp *pb.WatchResponse, refused error) error {
	w := s.addressee(resp)
	if resp.Canceled {
		err := refused
		if err == nil {
			err = refusal(resp)
		}
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
		if w.From > 0 {
			began = w.From - 1
		}
		w.report(Change{Began: began})
	}
	if len(resp.Events) > 0 {
		w.report(Change{Events: eventsOf(resp.Events), Header: resp.Header})
	}
	return nil
}

// refusal returns the error that etcd gave as the reason for the end of a watch.
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

// addressee notes a message, and returns the watch that it is for; nil: the watch was stopped
// meanwhile, or the message is about the stream.
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
	case resp.Canceled: // a watch that is refused has no ID
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

// state returns the key of a watch that is not checked otherwise, if there is one, and the newest
// revision that the stream has shown.
func (s *Stream) state() (key string, newest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		if !w.Checked {
			return w.Key, s.newest
		}
	}
	return "", s.newest
}
