package observe

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
)

// Defaults of Config.
const (
	// DefaultTimeout bounds a single request.
	DefaultTimeout = time.Second
	// DefaultWatchCheck is the time between two checks of a quiet watch. With DefaultTimeout, an
	// unavailable etcd is noticed within 6 s.
	DefaultWatchCheck = 2 * time.Second
)

// Config configures an Observer. Election, KV and Watcher are required.
type Config struct {
	// Election is the name: any bytes but '/', up to keys.MaxName of them.
	Election string
	// KV and Watcher are the RPC surface: a *clientv3.Client is both; so are
	// namespaced and fake clients.
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Key, if set, is the key of the candidate whose position Observer.Positions reports. It need
	// not exist.
	Key string

	Options
}

// Options set how an Observer watches. The zero value has the default of each.
type Options struct {
	// Timeout bounds each single request, and the opening of a watch; after four consecutive
	// timeouts etcd counts as unavailable. 0 means DefaultTimeout.
	Timeout time.Duration
	// WatchCheck is the time between two checks of a quiet watch. 0 means
	// DefaultWatchCheck; negative means none.
	WatchCheck time.Duration
	// Backoff returns the pause after the n-th consecutive failed attempt, counted from 0. nil
	// means doubling from 25 ms to 1 s with jitter. A pause is at least 5 ms, whatever the function
	// returns.
	Backoff func(attempt int) time.Duration
	// Foreign, if set, is called for each key in the election's range that is not a candidate's: when
	// the range is read, and when such a key is put, but not when it is deleted. It is called in
	// order, on a goroutine of its own, which Hooks share, and must not call Close.
	Foreign func(key string)
	// Hooks are called for events of the observer's watch. See Hooks for the calling rules.
	Hooks Hooks
}

// Check returns the error that New would return for c, except for a missing KV or Watcher: for
// callers that set those later. The error wraps eldest.ErrInvalid.
func (c Config) Check() error {
	if err := keys.Check(c.Election); err != nil {
		return err
	}
	return c.Options.Check()
}

// Check returns the error that New would return for the options. The error wraps eldest.ErrInvalid.
func (o Options) Check() error {
	if o.Timeout < 0 {
		return fmt.Errorf("%w: Config.Timeout %v is negative", eldest.ErrInvalid, o.Timeout)
	}
	return nil
}

func (c Config) withDefaults() (Config, error) {
	if err := c.Check(); err != nil {
		return c, err
	}
	switch {
	case absent.Client(c.KV):
		return c, fmt.Errorf("%w: Config.KV is nil", eldest.ErrInvalid)
	case absent.Client(c.Watcher):
		return c, fmt.Errorf("%w: Config.Watcher is nil", eldest.ErrInvalid)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.WatchCheck == 0 {
		c.WatchCheck = DefaultWatchCheck
	}
	c.Backoff = retry.Or(c.Backoff, retry.Default())
	return c, nil
}

// Observer reports the leader of one election. It is made by New and ended by Close. All methods
// are safe for concurrent use.
type Observer struct {
	cfg    Config
	source *watch.Source
	// cell is the only one, so that no reader receives a state that is older than another reader's.
	cell  latest.Cell[report]
	hooks serial.Queue
	stop  context.CancelFunc
	done  chan struct{}
	// queue is the length of the view's queue, -1 while there is no view.
	queue         atomic.Int64
	subscriptions atomic.Int64

	// The other fields belong to the observing goroutine.
	view view.View
	// newest is the highest token reported so far.
	newest eldest.Token
}

// New starts observing and returns at once; the first state is published when etcd has responded.
// The error wraps eldest.ErrInvalid, and then nothing was sent.
func New(cfg Config) (*Observer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, failed("observe", cfg.Election, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &Observer{cfg: cfg, stop: stop, done: make(chan struct{})}
	o.source = source(cfg, &o.hooks)
	o.view = view.View{Election: cfg.Election, Foreign: foreign(cfg, &o.hooks)}
	o.queue.Store(-1)
	serial.Call(&o.hooks, cfg.Hooks.Started, StartedEvent{Observer: o})
	go o.run(ctx)
	return o, nil
}

// State returns the newest state. It is Unknown, with a reason, before the first response of etcd
// and after the observer's end. State never blocks and sends nothing. The caller may change the
// bytes of the leader's value.
func (o *Observer) State() eldest.State {
	if err := o.cell.Err(); err != nil {
		return eldest.State{Reason: err}
	}
	if newest, ok := o.cell.Get(); ok {
		return unshared(newest.State)
	}
	return eldest.State{Reason: failed("observe", o.cfg.Election, errNotYet)}
}

var errNotYet = fmt.Errorf("%w yet", eldest.ErrUnavailable)

// Subscribe returns a subscription that has not returned any state yet. It needs no goroutine and
// no clean-up, and sends nothing to etcd.
func (o *Observer) Subscribe() *Subscription {
	o.subscriptions.Add(1)
	return &Subscription{observer: o, reader: o.cell.Reader()}
}

// Close ends the observer and waits for its goroutines, including running calls of Config.Foreign
// and Config.Hooks: they must return. Subscribers still receive the newest state and then an error
// that wraps eldest.ErrClosed. Close may be called again.
func (o *Observer) Close() {
	o.stop()
	<-o.done
	_ = o.hooks.Wait(context.Background())
}

// Subscription reads an observer's states. It is for one goroutine at a time;
// many subscriptions of one observer are independent.
type Subscription struct {
	observer *Observer
	reader   *latest.Reader[report]
	// seen is the number of the newest state that was returned.
	seen int
}

// Next returns the newest state if this subscription has not returned it yet; otherwise it blocks
// for a newer one. The first call returns the present state. States that were replaced in between
// are skipped. When ctx ends, Next returns its cause; nothing is lost, and Next may be called
// again. After the observer's end Next returns an error: eldest.ErrClosed, or why etcd refused
// permanently. The caller may change the bytes of the leader's value: other readers have copies of
// their own.
func (s *Subscription) Next(ctx context.Context) (eldest.State, error) {
	if ctx == nil {
		return eldest.State{}, failed("observe", s.observer.cfg.Election, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	newest, err := s.reader.NextWhere(ctx, func(r report) bool { return r.number > s.seen })
	if err == nil {
		s.seen = newest.number
	}
	return unshared(newest.State), err
}

// unshared returns a state with a copy of the value, which all readers of the cell share.
func unshared(state eldest.State) eldest.State {
	state.Leader = owned(state.Leader)
	return state
}

// owned returns a candidate with a copy of its value.
func owned(c eldest.Candidate) eldest.Candidate {
	c.Value = bytes.Clone(c.Value)
	return c
}

func (o *Observer) run(ctx context.Context) {
	defer close(o.done)
	begin, end := keys.Range(o.cfg.Election)
	err := o.source.Follow(ctx, watch.Target{
		Key: begin, End: end,
		Snapshot: func(resp *clientv3.GetResponse) bool {
			o.view.Reset(resp.Header.Revision, resp.Kvs)
			o.publish(stateOf(&o.view))
			return false
		},
		Change: func(revision int64, events []*clientv3.Event) bool {
			o.view.Change(revision, events)
			o.publish(stateOf(&o.view))
			return false
		},
		Interrupted: o.interrupted,
		Probe:       o.view.Probe,
		Partial:     o.cfg.Key != "", // it does not show who leaves ahead of that key
	})
	if ctx.Err() != nil {
		err = eldest.ErrClosed
	} else {
		o.unknown(err)
	}
	o.queue.Store(-1)
	err = failed("observe", o.cfg.Election, err)
	o.cell.Close(err)
	serial.Call(&o.hooks, o.cfg.Hooks.Ended, EndedEvent{Observer: o, Cause: err})
}

// stateOf returns the state that follows from a view.
func stateOf(v *view.View) eldest.State {
	leader := v.Leader()
	if leader == nil {
		return eldest.State{Kind: eldest.Nobody, Revision: v.Revision}
	}
	return eldest.State{Kind: eldest.Led, Leader: candidate(v.Election, leader), Revision: v.Revision}
}

// candidate converts a candidate's key.
func candidate(election string, kv *mvccpb.KeyValue) eldest.Candidate {
	lease, _ := keys.Parse(election, string(kv.Key))
	return eldest.Candidate{
		Key: string(kv.Key), Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision, Value: kv.Value,
	}
}

// publish makes a known state the newest one, unless it changes nothing.
func (o *Observer) publish(state eldest.State) {
	if state.Kind == eldest.Led {
		if state.Leader.Token < o.newest {
			// etcd was restored from a backup, and its history went back. Tokens as fences would no
			// longer be safe.
			o.unknown(fmt.Errorf("token %d after %d: the revision of etcd went back: was it restored from a backup?", state.Leader.Token, o.newest))
			return
		}
		o.newest = state.Leader.Token
	}
	o.queue.Store(int64(len(o.view.Queue)))
	o.report(state, o.ahead())
}

// interrupted is called when the watch is not in place, with the reason.
func (o *Observer) interrupted(reason error) {
	o.unknown(reason)
	serial.Call(&o.hooks, o.cfg.Hooks.Interrupted, InterruptedEvent{Election: o.cfg.Election, Reason: reason, At: time.Now()})
}

func (o *Observer) unknown(reason error) {
	o.queue.Store(-1)
	o.report(eldest.State{Reason: failed("observe", o.cfg.Election, reason)}, -1)
}

// source returns the client of a watch, whose repeated reads are reported to the hooks.
func source(cfg Config, hooks *serial.Queue) *watch.Source {
	s := &watch.Source{KV: cfg.KV, Watcher: cfg.Watcher, Backoff: cfg.Backoff, Timeout: cfg.Timeout, WatchCheck: cfg.WatchCheck}
	if cfg.Hooks.Retrying != nil {
		s.Failed = func(attempt int, err error, pause time.Duration) {
			serial.Call(hooks, cfg.Hooks.Retrying, RetryingEvent{
				Election: cfg.Election, Op: "watch", Attempt: attempt, Err: err, Pause: pause, At: time.Now(),
			})
		}
	}
	return s
}

// foreign returns the function that receives the keys that belong to no candidate; nil if the caller
// wants none.
func foreign(cfg Config, hooks *serial.Queue) func(key string) {
	if cfg.Foreign == nil {
		return nil
	}
	return func(key string) { hooks.Do(func() { cfg.Foreign(key) }) }
}

func failed(op, election string, err error) error {
	return &eldest.OpError{Op: op, Election: election, Err: err}
}
