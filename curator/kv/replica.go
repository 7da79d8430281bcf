package kv

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Replica is a copy of the data for nodes that do not lead: Get and List of kvpb.KV for
// curator.Config.Reads, and Age for ReadAge. All of the data is read again each time, which is for
// small services. Made by NewReplica. Safe for concurrent use.
type Replica struct {
	kvpb.UnimplementedKVServer
	space Space
	now   func() time.Duration
	last  atomic.Pointer[snapshot]
}

// snapshot is the data as of one revision.
type snapshot struct {
	// asked is when the read was sent. Reads of etcd are linearizable: the snapshot has everything
	// that was written before that.
	asked time.Duration
	items []*kvpb.Item // in the order of their keys; never changed
}

// NewReplica returns a replica that has no data yet. now is its clock, which must continue while
// the machine sleeps (lease.Boot).
func NewReplica(space Space, now func() time.Duration) *Replica {
	return &Replica{space: space, now: now}
}

// Follow keeps the copy up to date: it reads all of the data repeatedly, with a pause in between,
// until ctx ends, and returns ctx's cause. While etcd does not answer the copy grows older. Only
// one Follow may run at a time.
func (r *Replica) Follow(ctx context.Context, client clientv3.KV, pause time.Duration) error {
	for {
		if s := r.read(ctx, client); s != nil {
			r.last.Store(s)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// patience bounds a read, for a connection that does not respond any more.
const patience = 5 * time.Second

func (r *Replica) read(ctx context.Context, client clientv3.KV) *snapshot {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &snapshot{asked: r.now()}
	resp, err := client.Get(ctx, r.space.Data(""), clientv3.WithPrefix())
	if err != nil {
		return nil
	}
	for _, kv := range resp.Kvs {
		s.items = append(s.items, r.space.item(kv))
	}
	return s
}

// Age returns how old the copy is at most, or UNAVAILABLE; see curator.Config.ReadAge.
func (r *Replica) Age(context.Context) (time.Duration, error) {
	s := r.last.Load()
	if s == nil {
		return 0, errNoCopy
	}
	return r.now() - s.asked, nil
}

var errNoCopy = status.Error(codes.Unavailable, "this node has no copy of the data yet")

// Get reads one key of the copy; see kvpb.KV.
func (r *Replica) Get(_ context.Context, q *kvpb.GetRequest) (*kvpb.Item, error) {
	if err := checkKey(q.GetKey()); err != nil {
		return nil, err
	}
	s := r.last.Load()
	if s == nil {
		return nil, errNoCopy
	}
	at, found := slices.BinarySearchFunc(s.items, q.GetKey(), func(i *kvpb.Item, key string) int { return strings.Compare(i.GetKey(), key) })
	if !found {
		return nil, missing(q.GetKey())
	}
	return s.items[at], nil
}

// List reads the keys with a prefix from the copy, all as of one revision; see kvpb.KV.
func (r *Replica) List(q *kvpb.ListRequest, stream grpc.ServerStreamingServer[kvpb.Item]) error {
	s := r.last.Load()
	if s == nil {
		return errNoCopy
	}
	for _, i := range s.items {
		if !strings.HasPrefix(i.GetKey(), q.GetPrefix()) {
			continue
		}
		if err := stream.Send(i); err != nil {
			return err
		}
	}
	return nil
}
