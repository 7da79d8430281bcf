package memetcd

import (
	"context"
	"reflect"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher is a client's Watcher. It is not etcd's own, because that one waits on a channel that was
// made when the program started, which stops the clock of testing/synctest.
type watcher struct {
	link    *Link
	ctx     context.Context //nolint:containedctx // ends with Close
	end     context.CancelFunc
	watches sync.WaitGroup
	asked   int // the number of requests for progress; etcd's mutex guards it
}

func newWatcher(l *Link) *watcher {
	w := &watcher{link: l}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// Close ends all watches, and blocks until none is left.
func (w *watcher) Close() error {
	e := w.link.etcd
	e.mu.Lock() // so that no watch begins while Wait is called
	w.end()
	e.mu.Unlock()
	w.watches.Wait()
	return nil
}

// RequestProgress makes each watch of the client report the revision up to which it has reported
// all changes.
func (w *watcher) RequestProgress(ctx context.Context) error {
	_, err := send(ctx, w.link, w, func(e *Etcd, w *watcher) (none struct{}, err error) {
		w.asked++
		e.wake()
		return none, nil
	})
	return err
}

// Watch opens a watch, which ends with ctx or the client.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	s := &watch{
		begin: string(op.KeyBytes()), end: string(op.RangeBytes()), next: op.Rev(),
		created: flag(op, "createdNotify"), before: flag(op, "prevKV"), noPuts: flag(op, "filterPut"), noDeletions: flag(op, "filterDelete"),
		out: make(chan clientv3.WatchResponse),
	}
	e := w.link.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.ctx.Err() != nil {
		close(s.out)
		return s.out
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.ctx, cancel)
	w.watches.Go(func() {
		defer cancel()
		defer stop()
		defer close(s.out)
		w.serve(ctx, s)
	})
	return s.out
}

// flag reads a field of a watch's options, for some of which etcd's client has no method before 3.7.
func flag(op clientv3.Op, name string) bool { return reflect.ValueOf(op).FieldByName(name).Bool() }

// watch is one watch.
type watch struct {
	begin, end                           string
	created, before, noPuts, noDeletions bool
	// next is the first revision that is reported; 0: the one after the watch has begun. seen is the
	// length of the log that was read, and asked the number of requests for progress that were
	// answered.
	next        int64
	seen, asked int
	out         chan clientv3.WatchResponse
}

// serve reports changes until ctx ends.
func (w *watcher) serve(ctx context.Context, s *watch) {
	e := w.link.etcd
	for first := true; w.link.wait(ctx) == nil; first = false {
		e.mu.Lock()
		resp, header, news := clientv3.WatchResponse{Created: first}, e.header(), e.news
		if first {
			s.asked = w.asked
			if s.next == 0 {
				s.next = e.revision + 1
			}
		} else {
			resp.Events = s.changes(e)
			s.seen = len(e.log)
		}
		told := first && s.created || len(resp.Events) > 0 || s.asked < w.asked
		s.asked = w.asked
		e.mu.Unlock()
		switch {
		case told:
			SetHeader(&resp, header)
			select {
			case s.out <- resp:
			case <-ctx.Done():
				return
			}
		case !first:
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}
}

// changes returns the changes that were not read yet and are to be reported.
func (s *watch) changes(e *Etcd) (events []*clientv3.Event) {
	for _, kv := range e.log[s.seen:] {
		deleted := kv.Version == 0
		if kv.ModRevision < s.next || !within(string(kv.Key), s.begin, s.end) || deleted && s.noDeletions || !deleted && s.noPuts {
			continue
		}
		event := &clientv3.Event{Kv: clone(kv)}
		if deleted {
			event.Type = clientv3.EventTypeDelete
		}
		if s.before && kv.CreateRevision < kv.ModRevision { // it was not created by this change
			event.PrevKv = clone(existing(e.versions[string(kv.Key)], kv.ModRevision-1))
		}
		events = append(events, event)
	}
	return events
}

// SetHeader sets the header of a response, which is a pointer, or a value with clients before 3.7.
func SetHeader(resp *clientv3.WatchResponse, to *pb.ResponseHeader) {
	switch header := any(&resp.Header).(type) {
	case **pb.ResponseHeader:
		*header = to
	case *pb.ResponseHeader:
		header.ClusterId, header.MemberId, header.Revision, header.RaftTerm = to.ClusterId, to.MemberId, to.Revision, to.RaftTerm
	}
}
