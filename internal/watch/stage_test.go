package watch_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/internal/watch"
)

const (
	timeout = time.Second
	recheck = 10 * time.Second
	backoff = 100 * time.Millisecond
)

// stage is a source whose server is simulated by the test, request by request, in virtual time.
// Requests are answered only by the test.
type stage struct {
	*watch.Source
	watches chan *opening
	reads   chan *reading
	stuck   bool // the channels of watches neither deliver nor close

	ends []func() // of what follow has started

	mu  sync.Mutex
	log []string // what the target has received
}

// opening is a watch that was requested.
type opening struct {
	ctx    context.Context
	key    string
	op     clientv3.Op // the same options, on a read
	leader bool        // a leader is required
	stream string      // which stream, by its metadata
	at     time.Time
	ch     chan clientv3.WatchResponse
}

// reading is a read that was requested.
type reading struct {
	ctx   context.Context
	op    clientv3.Op
	at    time.Time
	reply chan func() (clientv3.OpResponse, error)
}

type fakeWatcher struct {
	clientv3.Watcher
	s *stage
}

func (w fakeWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	o := &opening{ctx: ctx, key: key, op: clientv3.OpGet(key, opts...), at: time.Now(), ch: make(chan clientv3.WatchResponse, 64)}
	md, _ := metadata.FromOutgoingContext(ctx)
	o.leader = len(md.Get("hasleader")) == 1
	o.stream = strings.Join(md.Get("eldest-stream"), ",")
	out := make(chan clientv3.WatchResponse, 64)
	go func() { // as the client does: the channel is closed when the context ends
		defer close(out)
		for {
			select {
			case resp, ok := <-o.ch:
				if !ok {
					return
				}
				out <- resp
			case <-ctx.Done():
				return
			}
		}
	}()
	w.s.watches <- o
	if w.s.stuck {
		return make(chan clientv3.WatchResponse)
	}
	return out
}

type fakeKV struct {
	clientv3.KV
	s *stage
}

// Get is called by the check of a stream.
func (kv fakeKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := kv.Do(ctx, clientv3.OpGet(key, opts...))
	return resp.Get(), err
}

func (kv fakeKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	r := &reading{ctx: ctx, op: op, at: time.Now(), reply: make(chan func() (clientv3.OpResponse, error), 1)}
	select {
	case kv.s.reads <- r:
	case <-ctx.Done():
		return clientv3.OpResponse{}, ctx.Err()
	}
	select {
	case reply := <-r.reply:
		return reply()
	case <-ctx.Done():
		return clientv3.OpResponse{}, ctx.Err()
	}
}

// play runs a test with a stage, in virtual time.
func play(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{watches: make(chan *opening, 100), reads: make(chan *reading)}
		s.Source = &watch.Source{
			KV: fakeKV{s: s}, Watcher: fakeWatcher{s: s},
			Backoff: func(int) time.Duration { return backoff },
			Timeout: timeout, WatchCheck: -1,
		}
		f(t, s)
		for _, end := range s.ends {
			end()
		}
	})
}

// start runs a function and returns a channel on which its result arrives.
func start[T any](f func() T) <-chan T {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return result
}

// created confirms the watch at a revision.
func (o *opening) created(revision int64) {
	resp := clientv3.WatchResponse{Created: true}
	memetcd.SetHeader(&resp, &etcdserverpb.ResponseHeader{Revision: revision})
	o.ch <- resp
}

// send delivers events in one response.
func (o *opening) send(events ...*clientv3.Event) { o.ch <- clientv3.WatchResponse{Events: events} }

// answer gives a read its keys, as of a revision.
func (r *reading) answer(revision int64, kvs ...*mvccpb.KeyValue) {
	resp := &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}, Kvs: kvs, Count: int64(len(kvs))}
	r.reply <- func() (clientv3.OpResponse, error) { return resp.OpResponse(), nil }
}

func (r *reading) fail(err error) {
	r.reply <- func() (clientv3.OpResponse, error) { return clientv3.OpResponse{}, err }
}

// place confirms the next watch, and answers the read of its snapshot.
func (s *stage) place(t *testing.T, revision int64, kvs ...*mvccpb.KeyValue) *opening {
	t.Helper()
	o := <-s.watches
	o.created(revision)
	(<-s.reads).answer(revision, kvs...)
	synctest.Wait()
	return o
}

// asked returns the next read, which must come within an hour.
func (s *stage) asked(t *testing.T) *reading {
	t.Helper()
	select {
	case r := <-s.reads:
		return r
	case <-time.After(time.Hour):
		t.Fatal("nothing was asked")
		return nil
	}
}

// kv is a key as it is after a put.
func kv(key string, create, mod int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), CreateRevision: create, ModRevision: mod, Lease: 7, Version: 1}
}

func putEvent(kv *mvccpb.KeyValue) *clientv3.Event {
	return &clientv3.Event{Type: mvccpb.PUT, Kv: kv}
}

func deleteEvent(key string, revision int64) *clientv3.Event {
	return &clientv3.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision}}
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// told returns what the target has received since the last call.
func (s *stage) told() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

// target returns a target that records its calls. It has seen enough at a revision.
func (s *stage) target(enough int64) watch.Target {
	return watch.Target{
		Key: "k/", End: "k0",
		Snapshot: func(resp *clientv3.GetResponse) bool {
			s.note("snapshot %d with %d", resp.Header.Revision, len(resp.Kvs))
			return enough > 0 && resp.Header.Revision >= enough
		},
		Change: func(revision int64, events []*clientv3.Event) bool {
			s.note("change %d with %d", revision, len(events))
			return enough > 0 && revision >= enough
		},
		Interrupted: func(reason error) { s.note("interrupted: %v", reason) },
	}
}

// follow starts to follow until the end of the test, and returns a channel for the result and the
// function that ends it.
func (s *stage) follow(t *testing.T, target watch.Target) (<-chan error, context.CancelCauseFunc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() {
		defer close(result)
		result <- s.Follow(ctx, target)
	}()
	s.ends = append(s.ends, func() { ended(t, result, cancel) })
	return result, cancel
}

// ended ends a follow, and requires that it ends at once, with the cause, unless the test has received
// its result.
func ended(t *testing.T, result <-chan error, cancel context.CancelCauseFunc) {
	t.Helper()
	begun := time.Now()
	cancel(errEnough)
	if err, open := <-result; open {
		require.ErrorIs(t, err, errEnough)
		require.Zero(t, time.Since(begun))
	}
}

var errEnough = fmt.Errorf("the test has seen enough")
