package watch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/watch"
)

// picture is a range as its follower has received it.
type picture struct {
	mu          sync.Mutex
	kvs         map[string]string
	revision    int64
	snapshots   int
	interrupted []error
	wrong       []string
	changed     chan struct{} // holds at most one value
}

// follow follows a prefix until the test ends, and waits for the first snapshot.
func follow(t *testing.T, s *watch.Source, target watch.Target) *picture {
	t.Helper()
	p := &picture{changed: make(chan struct{}, 1)}
	target.Snapshot = func(resp *clientv3.GetResponse) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if resp.Header.Revision < p.revision {
			p.wrong = append(p.wrong, fmt.Sprintf("snapshot %d after %d", resp.Header.Revision, p.revision))
		}
		p.kvs, p.revision = make(map[string]string), resp.Header.Revision
		p.snapshots++
		for _, kv := range resp.Kvs {
			p.kvs[string(kv.Key)] = string(kv.Value)
		}
		p.wake()
		return false
	}
	target.Change = func(revision int64, events []*clientv3.Event) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if revision <= p.revision {
			p.wrong = append(p.wrong, fmt.Sprintf("change %d after %d", revision, p.revision))
		}
		p.revision = revision
		for _, ev := range events {
			if ev.Kv.ModRevision != revision {
				p.wrong = append(p.wrong, fmt.Sprintf("an event of %d at %d", ev.Kv.ModRevision, revision))
			}
			if ev.Type == mvccpb.DELETE {
				delete(p.kvs, string(ev.Kv.Key))
			} else {
				p.kvs[string(ev.Kv.Key)] = string(ev.Kv.Value)
			}
		}
		p.wake()
		return false
	}
	target.Interrupted = func(reason error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.interrupted = append(p.interrupted, reason)
		p.wake()
	}
	// The newest key of the range; the picture must be at least as new.
	target.Probe = func() (clientv3.Op, func(clientv3.OpResponse) bool) {
		op := clientv3.OpGet(target.Key, clientv3.WithRange(target.End), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
		return op, func(answer clientv3.OpResponse) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			kvs := answer.Get().Kvs
			return len(kvs) == 0 || kvs[0].ModRevision <= p.revision
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	result := start(func() error { return s.Follow(ctx, target) })
	t.Cleanup(func() {
		cancel(errEnough)
		if err := <-result; !errors.Is(err, errEnough) {
			t.Errorf("Follow ended with %v", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.wrong) > 0 {
			t.Errorf("out of order: %v", p.wrong)
		}
	})
	p.until(t, "first snapshot", func() bool { return p.snapshots > 0 })
	return p
}

// interruptions returns the interruptions so far.
func (p *picture) interruptions() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.interrupted)
}

func (p *picture) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// until blocks until a condition on the picture holds.
func (p *picture) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(etcdtest.Patience)
	for {
		p.mu.Lock()
		ok := holds()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.changed:
		case <-limit:
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Fatalf("not in time: %s; revision %d, %d keys, interrupted by %v", what, p.revision, len(p.kvs), p.interrupted)
		}
	}
}

// shows blocks until the picture shows a key with a value.
func (p *picture) shows(t *testing.T, key, value string) {
	t.Helper()
	p.until(t, key+" = "+value, func() bool { return p.kvs[key] == value })
}
