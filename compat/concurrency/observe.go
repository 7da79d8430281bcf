package concurrency

import (
	"context"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
)

// Observe returns a channel that receives the leader's key, as the only one of a response: at once
// the present one, then each value that the leader proclaims, and each new leader. It continues
// after compactions, partitions and restarts of etcd. Values may be missing after these, and for a
// reader that is a thousand values behind; the newest one always arrives. The absence of a leader
// is not reported.
//
// The channel is closed when ctx ends, when the client is closed, or when etcd refuses permanently.
// One of these must happen, because two goroutines belong to the channel; after a refusal the
// remaining values must also be read.
func (e *Election) Observe(ctx context.Context) <-chan *clientv3.GetResponse {
	ch := make(chan *clientv3.GetResponse)
	f := &feed{more: make(chan struct{}, 1)}
	s := e.session
	watching, stop := context.WithCancel(ctx)
	detach := context.AfterFunc(life(s.client), stop)
	go func() {
		defer f.end()
		f.follow(watching, s.source, e.name)
	}()
	go func() {
		defer close(ch)
		defer stop()
		defer detach()
		f.deliver(watching, ch)
	}()
	return ch
}

// backlog is how many values may wait for a reader.
const backlog = 1000

// feed passes responses from the watch to the reader. The watch never waits for the reader.
type feed struct {
	mu      sync.Mutex
	waiting []*clientv3.GetResponse
	over    bool
	more    chan struct{} // one token when there is something new
}

func (f *feed) add(resp *clientv3.GetResponse) {
	f.mu.Lock()
	if len(f.waiting) == backlog {
		f.waiting = append(f.waiting[:0], f.waiting[1:]...) // drop the oldest
	}
	f.waiting = append(f.waiting, resp)
	f.mu.Unlock()
	f.wake()
}

func (f *feed) end() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

func (f *feed) next() (resp *clientv3.GetResponse, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return nil, f.over
	}
	resp = f.waiting[0]
	f.waiting[0] = nil
	f.waiting = f.waiting[1:]
	return resp, false
}

// deliver sends the responses of the feed until ctx ends, or the feed has ended.
func (f *feed) deliver(ctx context.Context, ch chan<- *clientv3.GetResponse) {
	for {
		resp, over := f.next()
		switch {
		case over:
			return
		case resp == nil:
			select {
			case <-f.more:
			case <-ctx.Done():
				return
			}
		default:
			select {
			case ch <- resp:
			case <-ctx.Done():
				return
			}
		}
	}
}

// follow adds each new leader and each new value of a leader, until ctx ends or etcd refuses
// permanently.
func (f *feed) follow(ctx context.Context, source *watch.Source, name string) {
	v := view.View{Election: name}
	var last *mvccpb.KeyValue
	var header *pb.ResponseHeader
	publish := func(revision int64) {
		leader := v.Leader()
		if leader == nil || last != nil && last.CreateRevision == leader.CreateRevision &&
			last.ModRevision == leader.ModRevision && string(last.Key) == string(leader.Key) {
			return
		}
		last = leader
		// Copies: the reader may change the response, and the view needs its own. They are made field by
		// field, because messages of clients before 3.7 cannot be cloned with the library of today.
		at := &pb.ResponseHeader{ClusterId: header.ClusterId, MemberId: header.MemberId, Revision: revision, RaftTerm: header.RaftTerm}
		f.add(&clientv3.GetResponse{Header: at, Kvs: []*mvccpb.KeyValue{{
			Key: slices.Clone(leader.Key), Value: slices.Clone(leader.Value), Lease: leader.Lease,
			CreateRevision: leader.CreateRevision, ModRevision: leader.ModRevision, Version: leader.Version,
		}}, Count: 1})
	}
	begin, end := keys.Range(name)
	_ = source.Follow(ctx, watch.Target{
		Key: begin, End: end,
		Snapshot: func(resp *clientv3.GetResponse) bool {
			header = resp.Header
			v.Reset(header.GetRevision(), resp.Kvs)
			publish(header.GetRevision())
			return false
		},
		Header: func(h *pb.ResponseHeader) { header = h },
		Change: func(revision int64, events []*clientv3.Event) bool {
			v.Change(revision, events)
			publish(revision)
			return false
		},
		Probe: v.Probe,
	})
}

// first reads the present leader: the oldest candidate's key alone, or none. If other keys are
// older, all keys are read.
func first(ctx context.Context, kv clientv3.KV, name string) (*clientv3.GetResponse, error) {
	begin, end := keys.Range(name)
	eldest := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	resp, err := kv.Get(ctx, begin, append(eldest, clientv3.WithLimit(1))...)
	if err == nil && len(resp.Kvs) > 0 && !view.Candidate(name, resp.Kvs[0]) && resp.More {
		resp, err = kv.Get(ctx, begin, eldest...)
	}
	if err != nil {
		return nil, err
	}
	resp.Kvs = slices.DeleteFunc(resp.Kvs, func(kv *mvccpb.KeyValue) bool { return !view.Candidate(name, kv) })
	resp.Kvs = resp.Kvs[:min(len(resp.Kvs), 1)]
	return resp, nil
}
