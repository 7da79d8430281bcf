package truth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// ErrGap is returned when history was compacted before it was recorded.
var ErrGap = errors.New("truth: changes were compacted before they were recorded")

// Recorder records all changes of a cluster. Its methods may be called from many
// goroutines.
type Recorder struct {
	clock instant.Clock
	tell  func(oracle.Change) error
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	rev     int64            // all changes up to it are recorded
	created map[string]int64 // of the keys that are there
	writes  map[int64]int    // values of the data key, by their token
	data    string
	err     error
	changed chan struct{} // closed and replaced when rev or err changes
}

// Start begins to record the cluster of which clients has a client for each member, from
// its first revision on. tell is called with each change, one at a time, in order; an
// error of it ends the recording. Instants are those of clock. data is the key whose writes are counted. The caller
// must Stop it before the clients are closed.
func Start(clients []*clientv3.Client, clock instant.Clock, data string, tell func(oracle.Change) error) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		clock: clock, tell: tell, stop: cancel, data: data,
		// The store of a new cluster is at revision 1, without any change.
		rev: 1, created: map[string]int64{}, writes: map[int64]int{}, changed: make(chan struct{}),
	}
	for _, c := range clients {
		r.wg.Go(func() { r.follow(ctx, c) })
	}
	return r
}

// Stop ends the recording and waits.
func (r *Recorder) Stop() {
	r.stop()
	r.wg.Wait()
}

// Err says why what was recorded is not the truth; nil: it is.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Writes is how many writes of the data key with that token were committed.
func (r *Recorder) Writes(token int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes[token]
}

// Reached blocks until all changes up to a revision are recorded, or ctx ends, or there is
// a gap.
func (r *Recorder) Reached(ctx context.Context, rev int64) error {
	for {
		r.mu.Lock()
		reached, err, changed := r.rev >= rev, r.err, r.changed
		r.mu.Unlock()
		switch {
		case err != nil:
			return err
		case reached:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("truth: revision %d is not recorded: %w", rev, context.Cause(ctx))
		}
	}
}

// follow watches one member until ctx ends, from where the record stands.
func (r *Recorder) follow(ctx context.Context, c *clientv3.Client) {
	for ctx.Err() == nil {
		r.mu.Lock()
		next := r.rev + 1
		r.mu.Unlock()
		watching, cancel := context.WithCancel(ctx)
		// All keys. Progress is told on request only; a revision that changed
		// nothing here does not exist.
		for resp := range c.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithRev(next)) {
			if resp.CompactRevision > 0 {
				r.compacted(resp.CompactRevision)
				break
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

// compacted is told that a watch began below a revision that is the oldest now. Another
// member may have told of what is missing meanwhile.
func (r *Recorder) compacted(oldest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rev+1 < oldest {
		r.fail(fmt.Errorf("%w: %d follows %d", ErrGap, oldest, r.rev))
	}
}

// take records what is new of events that are whole revisions in order.
func (r *Recorder) take(events []*clientv3.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.rev
	for _, ev := range events {
		if ev.Kv.ModRevision <= before || r.err != nil {
			continue
		}
		if err := r.tell(r.change(ev)); err != nil {
			r.fail(err)
			return
		}
		r.rev = ev.Kv.ModRevision
	}
	if r.rev > before {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

func (r *Recorder) change(ev *clientv3.Event) oracle.Change {
	key := string(ev.Kv.Key)
	c := oracle.Change{Rev: ev.Kv.ModRevision, At: r.clock.Now(), Key: key}
	if ev.Type == clientv3.EventTypeDelete {
		c.Deleted, c.Create = true, r.created[key]
		delete(r.created, key)
		return c
	}
	r.created[key] = ev.Kv.CreateRevision
	c.Value, c.Create, c.Lease = string(ev.Kv.Value), ev.Kv.CreateRevision, ev.Kv.Lease
	if key == r.data {
		var token int64
		if _, err := fmt.Sscanf(c.Value, "%d", &token); err == nil {
			r.writes[token]++
		}
	}
	return c
}

// fail notes the first error. The caller holds r.mu.
func (r *Recorder) fail(err error) {
	if r.err == nil {
		r.err = err
		close(r.changed)
		r.changed = make(chan struct{})
	}
}
