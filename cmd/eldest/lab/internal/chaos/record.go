package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// errGap is returned when history was compacted before it was recorded, or a member left changes out.
var errGap = errors.New("changes are missing in the record")

// record is what etcd committed: every change of every key, in order, from before the first
// participant to the end. Its methods may be called from many goroutines.
//
// It watches each member on a client of that one alone, not through the proxies that faults are made
// with. What one member cannot tell, because it is stopped, partitioned, restarted or replaced, another one
// does: changes are taken by revision, from the member that tells them first. As long as a majority
// is never lost for good, nothing is missing. Before a compaction that revision must have been reached.
//
// Not guaranteed: the instant of a commit. The recorded one is when the event arrived, which is later.
type record struct {
	now  func() time.Duration
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	rev     int64            // all changes up to it are recorded
	created map[string]int64 // of the keys that are there
	changes []oracle.Change
	gap     error // why the record is not the truth
}

// newRecord begins to record a new cluster of which clients has a client for each member. The
// caller must end it before the clients are closed.
func newRecord(clients []*clientv3.Client, now func() time.Duration) *record {
	ctx, cancel := context.WithCancel(context.Background())
	// The store of a new cluster is at revision 1, without any change.
	r := &record{now: now, stop: cancel, rev: 1, created: map[string]int64{}}
	for _, c := range clients {
		r.wg.Go(func() { r.follow(ctx, c) })
	}
	return r
}

// end ends the record and waits.
func (r *record) end() {
	r.stop()
	r.wg.Wait()
}

// err is not nil where the record is not the truth.
func (r *record) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gap
}

// all are the changes so far.
func (r *record) all() []oracle.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// wrote reports whether a write of the data key with that token was committed after a revision.
func (r *record) wrote(token, after int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.changes) - 1; i >= 0 && r.changes[i].Rev > after; i-- {
		var by int64
		if _, err := fmt.Sscanf(r.changes[i].Value, "%d", &by); r.changes[i].Key == dataKey && err == nil && by == token {
			return true
		}
	}
	return false
}

// revision is up to which all is recorded.
func (r *record) revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rev
}

// reached blocks until all changes up to a revision are recorded, or ctx ends, or there is
// a gap.
func (r *record) reached(ctx context.Context, rev int64) error {
	return inject.Until(ctx, fmt.Sprintf("that revision %d is recorded", rev), func(context.Context) (bool, error) {
		err := r.err()
		return err != nil || r.revision() >= rev, err
	})
}

// follow watches one member until ctx ends, from where the record ends.
func (r *record) follow(ctx context.Context, c *clientv3.Client) {
	for ctx.Err() == nil {
		watching, cancel := context.WithCancel(ctx)
		for resp := range c.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithRev(r.revision()+1)) {
			if resp.CompactRevision > 0 {
				r.compacted(resp.CompactRevision)
			}
			if resp.Err() != nil {
				break
			}
			r.take(resp.Events)
		}
		cancel()
		select {
		case <-time.After(20 * time.Millisecond): // the member is away
		case <-ctx.Done():
		}
	}
}

// compacted notes a gap where a watch began below a revision that is the oldest now, unless another
// member has told what is missing meanwhile.
func (r *record) compacted(oldest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rev+1 < oldest && r.gap == nil {
		r.gap = fmt.Errorf("%w: %d follows %d", errGap, oldest, r.rev)
	}
}

// take records what is new of events that are whole revisions in order.
func (r *record) take(events []*clientv3.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.rev
	for _, ev := range events {
		if ev.Kv.ModRevision <= before {
			continue
		}
		if ev.Kv.ModRevision > r.rev+1 && r.gap == nil { // each revision changes something
			r.gap = fmt.Errorf("%w: %d follows %d", errGap, ev.Kv.ModRevision, r.rev)
		}
		key := string(ev.Kv.Key)
		c := oracle.Change{Rev: ev.Kv.ModRevision, At: r.now(), Key: key, Value: string(ev.Kv.Value), Create: ev.Kv.CreateRevision, Lease: ev.Kv.Lease}
		if c.Deleted = ev.Type == clientv3.EventTypeDelete; c.Deleted {
			c.Create = r.created[key]
			delete(r.created, key)
		} else {
			r.created[key] = c.Create
		}
		r.changes = append(r.changes, c)
		r.rev = c.Rev
	}
}
