package sandbox

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/leasetime"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/keys"
)

const (
	// leasePause is the time between two looks at the queue and its leases, while a page is open.
	leasePause = time.Second
	// watchPause is the time between two attempts to watch the queue, readTime that for one read of it.
	watchPause = 50 * time.Millisecond
	readTime   = time.Second
	// runPause is the time between two looks at whether the member that serves the watch runs.
	runPause = 100 * time.Millisecond
)

// queue is what is known of the election's queue in etcd.
type queue struct {
	kvs      []*mvccpb.KeyValue
	revision int64
	// left is what etcd has answered about the leases, while a page was open.
	left map[int64]leasetime.Left
	// renewed has the last renewal of each lease that a wiretap has seen.
	renewed map[int64]renewal
}

// renewal is when a wiretap has seen that a lease was granted or renewed, and for how long.
type renewal struct {
	at  time.Time
	ttl time.Duration
}

// renews notes that a lease was granted or renewed, if a message says so.
func (s *Sandbox) renews(m *wiretap.Message) {
	r, lease := renewal{at: time.Now()}, int64(0)
	switch body := m.Body.(type) {
	case *etcdserverpb.LeaseGrantResponse:
		lease, r.ttl = body.ID, time.Duration(body.TTL)*time.Second
	case *etcdserverpb.LeaseKeepAliveResponse:
		lease, r.ttl = body.ID, time.Duration(body.TTL)*time.Second
	}
	if lease == 0 || r.ttl <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.renewed[lease] = r
	for id, old := range s.queue.renewed {
		if r.at.Sub(old.at) > 2*MaxTTL { // it has expired
			delete(s.queue.renewed, id)
		}
	}
}

// watchQueue adds the queue to the log at each revision at which it has changed, until ctx ends. It watches
// at one member for as long as that one runs and answers, and then at another one.
func (s *Sandbox) watchQueue(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i = (i + 1) % s.cfg.Members {
		if s.field.Member(i).Running() {
			s.watchQueueAt(ctx, i)
		}
		_ = retry.Sleep(ctx, watchPause) // the loop checks ctx
	}
}

// watchQueueAt watches at a member until that fails, or the member does not run any more. Neither is a
// problem of its own: the states of the members are shown.
func (s *Sandbox) watchQueueAt(ctx context.Context, member int) {
	// Without a leader a member receives no changes: then another one is asked.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	client := s.field.Each[member]
	revision, err := s.readQueue(ctx, client, 0)
	if err != nil {
		return
	}
	begin, end := keys.Range(s.cfg.Election)
	changes := client.Watch(ctx, begin, clientv3.WithRange(end), clientv3.WithRev(revision+1))
	tick := time.NewTicker(runPause)
	defer tick.Stop()
	looked, looking, last := make(chan error, 1), false, time.Time{}
	for {
		select {
		case response := <-changes: // the zero response if it is closed
			if response.Err() != nil || len(response.Events) == 0 {
				return
			}
			for _, e := range response.Events {
				if e.Kv.ModRevision == revision {
					continue // of the same transaction
				}
				if revision, err = s.readQueue(ctx, client, e.Kv.ModRevision); err != nil {
					return
				}
			}
		case <-tick.C:
			switch {
			case !s.field.Member(member).Running():
				return
			case !looking && time.Since(last) >= leasePause && s.log.Read(): // a page is open
				looking, last = true, time.Now()
				s.watching.Go(func() { looked <- s.lookAtQueue(ctx, client) })
			}
		case err := <-looked:
			if looking = false; err != nil {
				return
			}
		}
	}
}

// readQueue reads the queue as of a revision, 0 for the present one, and shows it.
func (s *Sandbox) readQueue(ctx context.Context, client *clientv3.Client, revision int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	begin, end := keys.Range(s.cfg.Election)
	found, err := client.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithRev(revision),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return 0, err
	}
	revision = cmp.Or(revision, found.Header.Revision)
	s.showQueue(func(q *queue) {
		if revision >= q.revision { // another read may have been later
			q.kvs, q.revision = found.Kvs, revision
		}
	})
	return revision, nil
}

// lookAtQueue asks etcd for the leases in the queue, and reads the queue: a member that can only receive has a
// leader, and may miss changes all the same.
func (s *Sandbox) lookAtQueue(ctx context.Context, client *clientv3.Client) error {
	var leases []int64
	s.mu.Lock()
	for _, kv := range s.queue.kvs {
		if kv.Lease != 0 {
			leases = append(leases, kv.Lease)
		}
	}
	s.mu.Unlock()
	if left := leasetime.Ask(ctx, client, leases, func(error) {}); len(left) > 0 {
		s.mu.Lock()
		s.queue.left = left
		s.mu.Unlock()
	}
	_, err := s.readQueue(ctx, client, 0)
	return err
}

// showQueue changes what is known of the queue, and adds it to the log.
func (s *Sandbox) showQueue(change func(*queue)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.queue)
	election := s.cfg.Election
	state := &feed.QueueState{Election: election, Revision: s.queue.revision, Places: []feed.PlaceState{}}
	for _, kv := range s.queue.kvs {
		_, err := keys.Parse(election, string(kv.Key))
		place := feed.PlaceState{
			Key: string(kv.Key), Value: shortened(string(kv.Value)), Create: kv.CreateRevision, Mod: kv.ModRevision,
			Lease: strconv.FormatInt(kv.Lease, 16), Foreign: err != nil,
		}
		if s.era.candidate(place.Value) != nil {
			place.Who = place.Value
		}
		place.LeftMS, place.GrantedMS = s.queue.times(kv.Lease)
		state.Places = append(state.Places, place)
	}
	s.log.Add(feed.Event{Type: feed.Queue, Queue: state})
}

// tolerance is by how much the time of a renewal may differ between etcd and a wiretap.
const tolerance = 100 * time.Millisecond

// times returns the time that a lease has left, and that for which it was granted, in milliseconds.
// etcd answers in whole seconds, rounded down. A renewal that was seen is exact, unless something
// else has changed the lease since, such as a new leader of etcd, which restarts all leases: it
// counts only if it agrees with etcd.
func (q *queue) times(lease int64) (left, granted float64) {
	seen, known := q.renewed[lease]
	told, ok := q.left[lease]
	ok = ok && told.TTL >= 0
	exact, least := seen.ttl-time.Since(seen.at), told.TTL-time.Since(told.Answered)
	agrees := exact > least-tolerance && exact < least+time.Second+tolerance
	switch {
	case known && (!ok || agrees || seen.at.After(told.Asked)):
		return feed.Milliseconds(max(exact, 0)), feed.Milliseconds(cmp.Or(told.Granted, seen.ttl))
	case ok:
		return feed.Milliseconds(max(least+time.Second/2, 0)), feed.Milliseconds(told.Granted)
	}
	return -1, 0
}
