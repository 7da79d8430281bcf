package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/retry"
)

// Change is what a watch reports.
type Change struct {
	// Revision is the etcd revision of the change.
	Revision int64
	// Put is the key as it was written; nil: it was deleted.
	Put *mvccpb.KeyValue
	// Err says that the watch has ended, and why: the stream was interrupted, or etcd has
	// refused or ended the watch. Nothing is reported after it. Read the key, and watch it
	// again from the revision of the answer.
	Err error
}

// ErrCompacted is the end of a watch from a revision that etcd has compacted.
var ErrCompacted = errors.New("etcd has compacted the revision at which the watch begins")

// Config is what a Stream needs.
type Config struct {
	// Open opens a stream that ends with ctx.
	Open func(ctx context.Context) (pb.Watch_WatchClient, error)
	// Revision asks a majority for the present revision; see check.go. nil: never asked.
	Revision func(ctx context.Context) (int64, error)
	// Check is the time between two checks of a stream, and Patience how long one may take.
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
	watches map[int64]*Watch
	last    int64 // the newest watch's ID
	out     *sender
	started bool
}

// Watch is one key that is watched.
type Watch struct {
	stream *Stream
	id     int64
	key    string
	report func(Change)
	from   int64
}

// New makes a stream. Nothing is opened before the first watch.
func New(cfg Config) *Stream {
	s := &Stream{cfg: cfg, watches: make(map[int64]*Watch)}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all watches, and blocks until no report is running.
func (s *Stream) Close() {
	s.end()
	s.done.Wait()
}

// Watch reports each change of a key from a revision on, once, in order, until the watch
// ends. It does not block. report is called by the stream's goroutine: it must return soon, and may call Watch
// and Stop.
func (s *Stream) Watch(key string, from int64, report func(Change)) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	w := &Watch{stream: s, id: s.last, key: key, report: report, from: from}
	s.watches[w.id] = w
	if !s.started {
		s.started = true
		s.done.Go(s.run)
	}
	s.out.send(w.request())
	return w
}

// Stop ends the watch. A report that is running goes on; no other begins.
func (w *Watch) Stop() {
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[w.id] != w {
		return
	}
	delete(s.watches, w.id)
	s.out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: w.id}}})
}

func (w *Watch) request() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(w.key), StartRevision: w.from, WatchId: w.id,
	}}}
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
	s.out = nil
	ended := s.watches
	s.watches = make(map[int64]*Watch)
	s.mu.Unlock()
	for _, w := range ended {
		w.report(Change{Err: reason})
	}
}

// once opens a stream, puts the watches that there are on it, and serves it until it ends.
func (s *Stream) once() error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(s.ctx))
	defer cancel(nil)
	opened, err := s.cfg.Open(ctx)
	if err != nil {
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	s.mu.Lock()
	out := newSender()
	s.out = out
	for _, w := range s.watches {
		out.send(w.request())
	}
	s.mu.Unlock()
	check := newCheck(s.cfg)
	parts.Go(func() { cancel(out.run(ctx, opened)) })
	parts.Go(func() { cancel(check.run(ctx, out)) })
	for {
		resp, err := opened.Recv()
		switch cause := context.Cause(ctx); {
		case err == nil:
			check.heard(resp)
			s.received(resp)
		case cause != nil:
			return cause
		default:
			return err
		}
	}
}

// received serves one message.
func (s *Stream) received(resp *pb.WatchResponse) {
	var ended error
	switch {
	case resp.CompactRevision > 0:
		ended = ErrCompacted
	case resp.Canceled:
		ended = fmt.Errorf("etcd has ended the watch: %s", resp.CancelReason)
	}
	s.mu.Lock()
	w := s.watches[resp.WatchId] // nil: stopped meanwhile, or a message about all watches
	if ended != nil {
		delete(s.watches, resp.WatchId)
	}
	s.mu.Unlock()
	if w == nil {
		return
	}
	for _, e := range resp.Events {
		c := Change{Revision: e.Kv.ModRevision}
		if e.Type == mvccpb.PUT {
			c.Put = e.Kv
		}
		w.report(c)
	}
	if ended != nil {
		w.report(Change{Err: ended})
	}
}
