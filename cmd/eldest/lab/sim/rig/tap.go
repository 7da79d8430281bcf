package rig

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Tap reads the store directly: it is the authority on what happened, and no network fault affects
// it. It misses nothing, restarts and compactions included, and records each change at the instant
// of its commit.
type Tap struct {
	now func() time.Duration

	mu      sync.Mutex
	changes []oracle.Change
	live    map[string]oracle.Change // newest put of each key that exists
	lost    bool                     // a compaction overtook the tap: the run is invalid

	stream mvcc.WatchStream
	done   chan struct{}
}

func newTap(now func() time.Duration) *Tap {
	return &Tap{now: now, live: map[string]oracle.Change{}}
}

// Changes returns all changes so far in the order of revisions, and whether
// that is all of them.
func (t *Tap) Changes() (all []oracle.Change, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]oracle.Change(nil), t.changes...), !t.lost
}

// Rev returns the revision of the newest change.
func (t *Tap) Rev() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rev()
}

func (t *Tap) rev() int64 {
	if n := len(t.changes); n > 0 {
		return t.changes[n-1].Rev
	}
	return 1 // an empty store is at revision 1
}

// Live returns the newest put of each key in [begin, end).
func (t *Tap) Live(begin, end string) map[string]oracle.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]oracle.Change{}
	for k, c := range t.live {
		if k >= begin && k < end {
			out[k] = c
		}
	}
	return out
}

// attach follows a store that was just opened, from the revision after the last change.
func (t *Tap) attach(kv mvcc.WatchableKV) {
	t.mu.Lock()
	from := t.rev() + 1
	t.mu.Unlock()
	t.stream, t.done = kv.NewWatchStream(), make(chan struct{})
	if _, err := t.stream.Watch(context.Background(), 0, []byte{0}, []byte{}, from); err != nil {
		panic(err) // fresh stream, fixed arguments
	}
	go t.follow(t.stream.Chan(), t.done)
}

func (t *Tap) detach() {
	t.stream.Close()
	<-t.done
}

func (t *Tap) follow(ch <-chan mvcc.WatchResponse, done chan struct{}) {
	defer close(done)
	for resp := range ch {
		t.mu.Lock()
		t.lost = t.lost || resp.CompactRevision != 0
		for _, ev := range resp.Events {
			t.add(ev)
		}
		t.mu.Unlock()
	}
}

// add records one event; the create revision and the lease of a deleted key are those of its last
// put, since the event has neither.
func (t *Tap) add(ev *mvccpb.Event) {
	key := string(ev.Kv.Key)
	c := oracle.Change{Rev: ev.Kv.ModRevision, At: t.now(), Key: key}
	if ev.Type == mvccpb.Event_DELETE {
		c.Deleted = true
		c.Create, c.Lease = t.live[key].Create, t.live[key].Lease
		delete(t.live, key)
	} else {
		c.Value, c.Create, c.Lease = string(ev.Kv.Value), ev.Kv.CreateRevision, ev.Kv.Lease
		t.live[key] = c
	}
	t.changes = append(t.changes, c)
}
