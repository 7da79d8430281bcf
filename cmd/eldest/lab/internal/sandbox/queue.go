package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/keys"
)

const (
	// queuePause is the time between two looks at the queue, and soonest the shortest one if messages
	// suggest that it has changed.
	queuePause = 200 * time.Millisecond
	soonest    = 20 * time.Millisecond
	// leasePause is the time between two looks at the leases, and between two events in which only
	// their times have changed.
	leasePause = time.Second
	// lookTime bounds one look.
	lookTime = 1500 * time.Millisecond
)

// queue looks at the election's queue in etcd.
type queue struct {
	in    *Sandbox
	poked chan struct{}

	mu   sync.Mutex
	seen map[int64]renewed // of leases: their last renewal that a wiretap has seen

	// Only follow uses these.
	asked time.Time
	left  map[int64]remaining // of leases: as etcd has answered at asked
}

// renewed is when a wiretap has seen that a lease was granted or renewed, and for how long.
type renewed struct {
	at  time.Time
	ttl time.Duration
}

// remaining is the time that a lease has left, in whole seconds, and that for which it was granted.
type remaining struct{ left, granted time.Duration }

func newQueue(in *Sandbox) *queue {
	return &queue{in: in, poked: make(chan struct{}, 1), seen: map[int64]renewed{}, left: map[int64]remaining{}}
}

// look makes follow look soon. It never blocks.
func (q *queue) look() {
	select {
	case q.poked <- struct{}{}:
	default:
	}
}

// renewal notes that a lease was granted or renewed, if a message says so.
func (q *queue) renewal(m wiretap.Message) {
	r, lease := renewed{at: time.Now()}, int64(0)
	switch body := m.Body.(type) {
	case *etcdserverpb.LeaseGrantResponse:
		lease, r.ttl = body.ID, time.Duration(body.TTL)*time.Second
	case *etcdserverpb.LeaseKeepAliveResponse:
		lease, r.ttl = body.ID, time.Duration(body.TTL)*time.Second
	}
	if lease == 0 || r.ttl <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen[lease] = r
	for id, old := range q.seen {
		if r.at.Sub(old.at) > 2*MaxTTL { // it has expired
			delete(q.seen, id)
		}
	}
}

// follow looks until ctx ends, and adds what has changed to the log, but nothing of an earlier era.
func (q *queue) follow(ctx context.Context) {
	var last feed.QueueState
	var shown time.Time
	for {
		era := q.in.present()
		if state, ok := q.read(ctx); ok && era == q.in.present() {
			passes := len(state.Places) > 0 && time.Since(shown) >= leasePause
			if shown.IsZero() || passes || !slices.EqualFunc(last.Places, state.Places, same) {
				q.in.log.Add(feed.Event{Type: feed.Queue, Queue: &state})
				last, shown = state, time.Now()
			}
		}
		select {
		case <-time.After(soonest):
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(queuePause - soonest):
		case <-q.poked:
		case <-ctx.Done():
			return
		}
	}
}

// same compares two places without the time that is left.
func same(a, b feed.PlaceState) bool {
	a.LeftMS, b.LeftMS = 0, 0
	return a == b
}

// read returns the queue, if etcd answers.
func (q *queue) read(ctx context.Context) (state feed.QueueState, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	election := q.in.cfg.Election
	kvs, revision, err := q.in.field.Queue(ctx, election)
	if err != nil {
		return state, false
	}
	state = feed.QueueState{Election: election, Revision: revision, Places: []feed.PlaceState{}}
	q.askFor(ctx, kvs)
	for _, kv := range kvs {
		_, err := keys.Parse(election, string(kv.Key))
		place := feed.PlaceState{
			Key: string(kv.Key), Value: shortened(string(kv.Value)), Create: kv.CreateRevision, Mod: kv.ModRevision,
			Lease: strconv.FormatInt(kv.Lease, 16), Foreign: err != nil,
		}
		if q.in.knows(place.Value) {
			place.Who = place.Value
		}
		place.LeftMS, place.GrantedMS = q.times(kv.Lease)
		state.Places = append(state.Places, place)
	}
	return state, true
}

// askFor asks etcd for the times of the leases, once in leasePause.
func (q *queue) askFor(ctx context.Context, kvs []*mvccpb.KeyValue) {
	all := time.Since(q.asked) >= leasePause
	if all {
		q.asked = time.Now()
		clear(q.left)
	}
	for _, kv := range kvs {
		if _, known := q.left[kv.Lease]; known || kv.Lease == 0 {
			continue
		}
		if !all { // a new one: a wiretap has seen its grant
			q.left[kv.Lease] = remaining{left: -1}
			continue
		}
		err := q.in.field.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
			resp, err := client.TimeToLive(ctx, clientv3.LeaseID(kv.Lease))
			if err == nil {
				q.left[kv.Lease] = remaining{time.Duration(resp.TTL) * time.Second, time.Duration(resp.GrantedTTL) * time.Second}
			}
			return err
		})
		if err != nil {
			return // it does not answer for the others either
		}
	}
}

// times returns the time that a lease has left, and that for which it was granted, in milliseconds.
// etcd answers in whole seconds, rounded down. A renewal that was seen is exact, unless something
// else has changed the lease since, such as a new leader of etcd, which restarts all leases: it
// counts only if it agrees with etcd.
func (q *queue) times(lease int64) (left, granted float64) {
	q.mu.Lock()
	seen, known := q.seen[lease]
	q.mu.Unlock()
	told, ok := q.left[lease]
	ok = ok && told.left >= 0
	exact, least := seen.ttl-time.Since(seen.at), told.left-time.Since(q.asked)
	agrees := exact > least-tolerance && exact < least+time.Second+tolerance
	switch {
	case known && (!ok || agrees || seen.at.After(q.asked)):
		return feed.Milliseconds(max(exact, 0)), feed.Milliseconds(cmp.Or(told.granted, seen.ttl))
	case ok:
		return feed.Milliseconds(max(least+time.Second/2, 0)), feed.Milliseconds(told.granted)
	default:
		return -1, feed.Milliseconds(told.granted)
	}
}

// tolerance is by how much the time of a renewal may differ between etcd and a wiretap.
const tolerance = 100 * time.Millisecond
