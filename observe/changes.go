package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
)

// Update is the change of a queue from one revision to a later one. Candidates are in the order of
// their tokens. A candidate that registered again with the same key is in Left and in Registered.
type Update struct {
	// State is the leader after the change, as an Observer reports it. If it is Unknown, all other
	// fields are zero: the queue that was reported before may have changed.
	State eldest.State
	// Queue is the number of candidates after the change.
	Queue int
	// Registered have come since the last Update; in the first one they are the whole queue.
	Registered []eldest.Candidate
	// Changed were put again, as a rule with another value; it is the new one.
	Changed []eldest.Candidate
	// Left are no longer in the queue, as they were last reported. etcd does not say whether a key
	// was deleted or its lease ended.
	Left []eldest.Candidate
	// Read means that the change was found by a read and not by the watch: in the first Update, and
	// after each one whose State is Unknown. It is the difference to the last queue that was reported:
	// candidates that came and left in between, and values that were replaced in between, are missing.
	Read bool
}

// errWentBack is the reason while etcd's revision is lower than one that was reported, or the leader's
// token is (G6).
var errWentBack = errors.New("the revision of etcd went back: was it restored from a backup?")

// maxWaiting is how many changes may wait for the loop over Changes.
const maxWaiting = 10_000

// Changes returns an iterator over all changes of an election's queue: first the whole queue, then
// one Update for each revision at which a candidate registered, changed its value or left. Revisions
// never decrease, nor do the leader's tokens (G6).
//
// Each loop opens one watch of its own and reads the queue once, at its start and after each
// interruption: compaction, a member that was restarted, a connection that was lost. Until then the
// State is Unknown with the reason; then the next Update is what has changed meanwhile. If 10,000
// changes wait because the loop's body is slow, that is an interruption, too.
//
// The iterator blocks until there is a change, and ends after an error: the cause of ctx, bad input,
// which wraps eldest.ErrInvalid and before which nothing was sent, or why etcd refused permanently.
// A break ends it without an error. When the loop has ended, so have its watch, its goroutines, and
// the calls of cfg.Foreign and cfg.Hooks; Hooks.Started and Hooks.Ended are not called, because there
// is no Observer. The iterator may be used more than once, also concurrently. The caller owns the
// Update.
//
// The cost: etcd sends each change of the queue to each loop. N loops in a queue of N candidates
// receive N times N registrations. Programs that need only the leader use New.
func Changes(ctx context.Context, cfg Config) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		cfg, err := cfg.withDefaults()
		if err == nil && ctx == nil {
			err = fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
		}
		if err != nil {
			yield(Update{}, failed("observe", cfg.Election, err))
			return
		}
		c := changes{cfg: cfg, yield: yield}
		if err := c.follow(ctx); err != nil && !c.stopped {
			yield(Update{}, failed("observe", cfg.Election, err))
		}
	}
}

// changes is the work of one loop. Everything runs on the loop's goroutine, except the hooks.
type changes struct {
	cfg   Config
	yield func(Update, error) bool
	stop  context.CancelFunc
	// stopped means that yield must not be called again.
	stopped bool
	hooks   serial.Queue
	view    view.View
	// known are the candidates that were reported, by key, as of revision.
	known    map[string]eldest.Candidate
	revision int64
	// newest is the highest token of a leader that was reported.
	newest eldest.Token
	// unknown means that the last Update was Unknown, or that there was none: then the next one is
	// found by a comparison of the whole queue.
	unknown bool
	// back means that the last Update was Unknown because the view is older than revision, or its
	// leader than newest.
	back bool
}

// follow calls yield until it returns false, ctx ends or etcd refuses permanently.
func (c *changes) follow(ctx context.Context) error {
	ctx, c.stop = context.WithCancel(ctx)
	defer func() { _ = c.hooks.Wait(context.Background()) }()
	defer c.stop()
	c.view = view.View{Election: c.cfg.Election, Foreign: foreign(c.cfg, &c.hooks)}
	c.known, c.unknown = map[string]eldest.Candidate{}, true
	begin, end := keys.Range(c.cfg.Election)
	return source(c.cfg, &c.hooks).Follow(ctx, watch.Target{
		Key: begin, End: end, Waiting: maxWaiting,
		Snapshot: func(resp *clientv3.GetResponse) bool {
			c.view.Reset(resp.Header.Revision, resp.Kvs)
			c.unknown = true
			c.report(nil)
			return false
		},
		Change: func(revision int64, events []*clientv3.Event) bool {
			c.view.Change(revision, events)
			c.report(events)
			return false
		},
		Interrupted: func(reason error) {
			c.back = false
			c.lost(reason)
			serial.Call(&c.hooks, c.cfg.Hooks.Interrupted, InterruptedEvent{Election: c.cfg.Election, Reason: reason, At: time.Now()})
		},
		Probe: c.view.Probe, Partial: true, // it does not show who comes and leaves behind the leader
	})
}

// report yields the difference between the view and what was reported, unless there is none. events
// are those that led to the view; they are not used where the whole queue is compared.
func (c *changes) report(events []*clientv3.Event) {
	state := unshared(stateOf(&c.view))
	if c.view.Revision < c.revision || state.Kind == eldest.Led && state.Leader.Token < c.newest {
		if !c.back {
			c.lost(errWentBack)
		}
		c.back, c.unknown = true, true
		return
	}
	c.back = false
	c.newest = max(c.newest, state.Leader.Token)
	u := Update{State: state, Queue: len(c.view.Queue), Read: c.unknown}
	if c.unknown {
		c.compare(&u)
	} else {
		c.apply(&u, events)
	}
	if !u.Read && len(u.Registered)+len(u.Changed)+len(u.Left) == 0 {
		return // keys of others
	}
	for _, candidates := range [][]eldest.Candidate{u.Registered, u.Changed, u.Left} {
		slices.SortFunc(candidates, func(a, b eldest.Candidate) int {
			return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Key, b.Key))
		})
	}
	c.revision, c.unknown = c.view.Revision, false
	c.send(u)
}

// compare sets the difference between the whole queue and what was reported.
func (c *changes) compare(u *Update) {
	present := make(map[string]bool, len(c.view.Queue))
	for _, kv := range c.view.Queue {
		present[string(kv.Key)] = true
		c.enter(u, candidate(c.cfg.Election, kv))
	}
	for key := range c.known {
		if !present[key] {
			c.leave(u, key)
		}
	}
}

// apply sets the difference that the events of one revision make.
func (c *changes) apply(u *Update, events []*clientv3.Event) {
	for _, event := range events {
		if event.Type == clientv3.EventTypeDelete {
			c.leave(u, string(event.Kv.Key))
		} else if view.Candidate(c.cfg.Election, event.Kv) {
			c.enter(u, candidate(c.cfg.Election, event.Kv))
		}
	}
}

func (c *changes) enter(u *Update, now eldest.Candidate) {
	before, present := c.known[now.Key]
	switch {
	case present && before.Token == now.Token && before.ModRevision == now.ModRevision:
		return
	case present && before.Token == now.Token:
		u.Changed = append(u.Changed, owned(now))
	default:
		c.leave(u, now.Key) // its former registration
		u.Registered = append(u.Registered, owned(now))
	}
	c.known[now.Key] = now
}

func (c *changes) leave(u *Update, key string) {
	if before, present := c.known[key]; present {
		delete(c.known, key)
		u.Left = append(u.Left, owned(before))
	}
}

// lost yields that the queue is unknown.
func (c *changes) lost(reason error) {
	c.unknown = true
	c.send(Update{State: eldest.State{Reason: failed("observe", c.cfg.Election, reason)}})
}

// send yields an update. When yield returns false, the context of follow ends. There may be further
// calls before Follow notices that.
func (c *changes) send(u Update) {
	if !c.stopped && !c.yield(u, nil) {
		c.stopped = true
		c.stop()
	}
}
