package loop

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// heard is the newest heartbeat of an older candidate; the zero value: there is none.
type heard struct {
	mod   int64
	value string
}

func heardOf(kvs []*mvccpb.KeyValue) heard {
	if len(kvs) == 0 {
		return heard{}
	}
	return heard{kvs[0].ModRevision, string(kvs[0].Value)}
}

// Silence is the missing heartbeat for which an older candidate was evicted.
type Silence struct {
	Elder core.Elder
	// For is the time since its newest heartbeat was received.
	For time.Duration
}

// ear follows the heartbeats of one session, for all candidates that wait behind it. If they stop,
// it evicts, for each of these candidates, the older candidate that it waits behind. The mutex of
// the session of the waiting candidates guards it.
//
// Invariant: an eviction is sent no sooner than the published timeout after the receipt of the
// heartbeat that it compares.
type ear struct {
	session *Session
	key     string // of the heartbeats
	source  *watch.Source
	waiting map[*Candidate]core.Elder
	stop    context.CancelFunc
}

// heed follows the heartbeats of an older candidate; the zero value: of none. The caller holds the
// mutex.
func (c *Candidate) heed(elder core.Elder) {
	var before core.Elder
	if c.ear != nil {
		before = c.ear.waiting[c]
	}
	if c.heart == nil || before == elder {
		return
	}
	s := c.session
	if old := c.ear; old != nil {
		delete(old.waiting, c)
		if len(old.waiting) == 0 {
			old.stop()
			delete(s.ears, old.key)
		}
	}
	c.ear = nil
	lease, err := keys.Parse(c.user.Entry.Election, elder.Key)
	if elder.Token == 0 || err != nil {
		return
	}
	key := keys.Heartbeat(lease)
	if c.ear = s.ears[key]; c.ear == nil {
		c.ear = s.listen(key, c.user.Source)
	}
	c.ear.waiting[c] = elder
}

// listen begins to follow heartbeats, with the parameters of a source, but without its hooks.
func (s *Session) listen(key string, as *watch.Source) *ear {
	ctx, stop := context.WithCancel(s.ctx)
	e := &ear{session: s, key: key, waiting: make(map[*Candidate]core.Elder), stop: stop, source: &watch.Source{
		KV: as.KV, Watcher: as.Watcher, Backoff: as.Backoff, Timeout: as.Timeout, WatchCheck: as.WatchCheck,
	}}
	if s.ears == nil {
		s.ears = make(map[string]*ear)
	}
	s.ears[key] = e
	news := make(chan heard, 1)
	s.tasks.run(func() { e.follow(ctx, news) })
	s.tasks.run(func() { e.run(ctx, news) })
	return e
}

// run waits for missing heartbeats, until ctx ends. If etcd makes no progress, or loses requests
// under way when its leader changes, missing heartbeats are not the fault of the older candidate.
// So a majority is asked after half of the timeout, and again at its end: in the half before an
// eviction etcd was able to accept heartbeats.
func (e *ear) run(ctx context.Context, news <-chan heard) {
	now := e.session.beats.Now
	var (
		last  heard
		since time.Duration // a clock reading from after it was received
		well  time.Duration // a reading from after a majority had nothing newer; 0: it was not asked
		timer = time.NewTimer(time.Hour)
	)
	defer timer.Stop()
	hear := func(newest heard) { last, since, well = newest, now(), 0 }
	for {
		select {
		case <-ctx.Done():
			return
		case newest := <-news:
			if newest != last {
				hear(newest)
			}
		case <-timer.C:
		}
		allowed := timeout(last.value)
		if allowed == 0 {
			timer.Stop()
			continue
		}
		due := since + allowed/2
		if well > 0 {
			due = max(since+allowed, well+allowed/2)
		}
		if left := due - now(); left > 0 {
			timer.Reset(max(left, LeastTimer))
			continue
		}
		asked := now()
		newest, err := e.read(ctx)
		if err != nil {
			return
		}
		switch {
		case newest != last:
			hear(newest)
		case well > 0 && now()-asked < allowed/4:
			e.evict(last, allowed, since)
			hear(last) // another whole timeout, if the older candidate still exists
		default:
			well = now()
		}
		timer.Reset(allowed / 4)
	}
}

// evict deletes the key of each older candidate, if its newest heartbeat is still the last one
// received.
func (e *ear) evict(last heard, within, since time.Duration) {
	type eviction struct {
		user  *User
		elder core.Elder
		txn.Suspect
	}
	var all []eviction
	s := e.session
	s.mu.Lock()
	for c, elder := range e.waiting {
		all = append(all, eviction{c.user, elder, txn.Suspect{
			Own: c.name.Key, OwnToken: c.state.Token, Key: elder.Key, Token: elder.Token, Heartbeat: e.key, Mod: last.mod, Value: last.value,
		}})
	}
	s.mu.Unlock()
	// Not under the context of the ear: the watch may report a deletion before the reply arrives.
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	slots := make(chan struct{}, most)
	var under sync.WaitGroup
	for _, one := range all {
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			evicted, _ := txn.Evict(ctx, one.user.KV, one.Suspect)
			if evicted && one.user.Evicted != nil {
				one.user.Evicted(Silence{one.elder, s.beats.Now() - since})
			}
		})
	}
	under.Wait()
}

// read reads the heartbeat from a majority, with as many attempts as it takes.
func (e *ear) read(ctx context.Context) (newest heard, err error) {
	policy := retryrpc.Policy{Client: e.source.KV, Timeout: e.source.Timeout, Backoff: e.source.Backoff}
	err = policy.Until(ctx, func(once context.Context) error {
		resp, err := e.source.KV.Get(once, e.key)
		if err == nil {
			newest = heardOf(resp.Kvs)
		}
		return err
	})
	return newest, err
}

// follow sends the newest heartbeat to news, from now on.
func (e *ear) follow(ctx context.Context, news chan heard) {
	var seen heard
	tell := func(newest heard) bool {
		seen = newest
		select {
		case <-news: // a value that was not received
		default:
		}
		news <- newest
		return false
	}
	_ = e.source.Follow(ctx, watch.Target{
		Key:      e.key,
		Snapshot: func(resp *clientv3.GetResponse) bool { return tell(heardOf(resp.Kvs)) },
		Change: func(_ int64, events []*clientv3.Event) bool {
			newest := events[len(events)-1]
			if newest.Type == mvccpb.DELETE {
				return tell(heard{})
			}
			return tell(heardOf([]*mvccpb.KeyValue{newest.Kv}))
		},
		Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
			return clientv3.OpGet(e.key), func(answer clientv3.OpResponse) bool {
				there := heardOf(answer.Get().Kvs)
				return there == seen || there.mod > 0 && there.mod < seen.mod
			}
		},
	})
}
