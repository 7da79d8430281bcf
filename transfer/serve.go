package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// Config is the configuration of Serve. Candidate, Session, KV and Watcher are required, and the
// last three must be those of the candidate's own Config.
type Config struct {
	Candidate *election.Candidate
	Session   *lease.Session
	KV        clientv3.KV
	Watcher   clientv3.Watcher

	ServeOptions
}

// ServeOptions set how requests are served. The zero value has the default of each.
type ServeOptions struct {
	// Accept decides whether a request is carried out. It is called on Serve's goroutine, must be
	// quick and must not block. nil accepts all.
	Accept func(Request) bool
	// Hooks are called for the events of the request key.
	Hooks Hooks

	// Timeout bounds each single request. 0 means election.DefaultTimeout.
	Timeout time.Duration
	// WatchCheck is the time between two liveness checks of the watch of the request key. 0 means
	// half the session's TTL, at most 5 s; negative means no checks.
	WatchCheck time.Duration
	// Backoff returns the pause after the n-th failed attempt in a row, from 0. nil means doubling
	// from 25 ms to 1 s with jitter. A pause is at least 5 ms, whatever the function returns.
	Backoff func(attempt int) time.Duration
}

// Check returns the error that Serve would return for the options. The error wraps eldest.ErrInvalid.
func (o ServeOptions) Check() error {
	if o.Timeout < 0 {
		return fmt.Errorf("%w: Config.Timeout %v is negative", eldest.ErrInvalid, o.Timeout)
	}
	return nil
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Candidate == nil:
		return c, fmt.Errorf("%w: Config.Candidate is nil", eldest.ErrInvalid)
	case c.Session == nil:
		return c, fmt.Errorf("%w: Config.Session is nil", eldest.ErrInvalid)
	case absent.Client(c.KV):
		return c, fmt.Errorf("%w: Config.KV is nil", eldest.ErrInvalid)
	case absent.Client(c.Watcher):
		return c, fmt.Errorf("%w: Config.Watcher is nil", eldest.ErrInvalid)
	}
	name, id := c.Candidate.Election(), int64(c.Session.ID())
	if c.Candidate.Key() != keys.Candidate(name, id) {
		return c, fmt.Errorf("%w: Config.Session is not the candidate's", eldest.ErrInvalid)
	}
	if c.Timeout == 0 {
		c.Timeout = election.DefaultTimeout
	}
	if c.WatchCheck == 0 {
		c.WatchCheck = min(c.Session.TTL()/2, 5*time.Second)
	}
	c.Backoff = retry.Or(c.Backoff, retry.Default())
	return c, c.Check()
}

// Serve carries out requests to a candidate to requeue or to drain, for as long as it blocks:
// through all candidacies and tenures of the candidate. It keeps a request key for each of them. A
// waiter that is asked to requeue does so; a leader that is asked to drain does so if the target is
// the next candidate. A request that does not fit the queue any more is refused, and the requester
// receives the reason. Serve costs one watch of one key, and two requests for each candidacy.
//
// It ends with ctx (the cause), with the session (its cause), with the candidate's Close
// (eldest.ErrClosed), or when etcd refuses permanently, such as the permission to write the request
// key (that error); a requeue that has begun is completed first. The candidacy continues, whatever
// ended Serve. The request key is deleted, at the latest with the lease. When Serve has returned,
// nothing of it is left running except hooks, which it does not wait for: those of its last events may
// be called a moment later. Run one Serve for each candidate at a time; two would take each other's
// messages.
//
// Not guaranteed: that a request is carried out soon. A process that was stopped reads it when it
// continues, and carries it out if the queue is then still as the request says. To withdraws its
// requests before that, unless the requester has crashed.
func Serve(ctx context.Context, cfg Config) error {
	if ctx == nil {
		return &eldest.OpError{Op: "serve transfers", Err: fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)}
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &eldest.OpError{Op: "serve transfers", Err: err}
	}
	s := newServing(cfg)
	err = s.run(ctx)
	return &eldest.OpError{Op: "serve transfers", Election: s.entry.Election, Key: s.key, Lease: s.entry.Lease, Err: reason(err)}
}

// reason returns the cause inside an OpError, and other errors unchanged.
func reason(err error) error {
	if op, ok := err.(*eldest.OpError); ok { //nolint:errorlint // only the outermost one is taken off
		return op.Err
	}
	return err
}

// serving is the state of one Serve. It belongs to its goroutine.
type serving struct {
	cfg    Config
	key    string // the candidate's
	entry  txn.Entry
	policy retryrpc.Policy
	hooks  serial.Queue
	// box is the request key as last read or written; the zero Box if there is none.
	box requestkey.Key
	// token is the token that the request key is for; 0 if there is none.
	token eldest.Token
}

func newServing(cfg Config) *serving {
	return &serving{
		cfg: cfg, key: cfg.Candidate.Key(),
		entry:  txn.Entry{Election: cfg.Candidate.Election(), Lease: int64(cfg.Session.ID())},
		policy: retryrpc.Policy{Client: cfg.KV, Timeout: cfg.Timeout, Backoff: cfg.Backoff},
	}
}

// run serves until its end, and cleans up.
func (s *serving) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(s.cfg.Session.Context(), func() { cancel(s.cfg.Session.Err()) })()
	boxes := make(chan news, 1)
	var watching sync.WaitGroup
	defer func() { // also if Accept panics
		cancel(nil)
		watching.Wait()
		s.close(ctx)
	}()
	watching.Go(func() { cancel(s.watch(ctx, boxes)) })
	return s.loop(ctx, boxes)
}

// loop keeps the request key up to date with the candidacy and answers requests.
func (s *serving) loop(ctx context.Context, boxes <-chan news) error {
	for {
		changed := s.cfg.Candidate.Changed()
		switch status := s.cfg.Candidate.Status(); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.cfg.Candidate.Closed():
			return eldest.ErrClosed
		case status.Token == s.token:
		case status.Token == 0:
			s.close(ctx)
		default:
			if err := s.open(ctx, status.Token, message{}); err != nil {
				return err
			}
			continue // it may have changed meanwhile
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case n := <-boxes:
			if err := s.received(ctx, n); err != nil {
				return err
			}
		}
	}
}

// open writes the request key for a token of the candidate. If the token is no longer current, that
// is no error.
func (s *serving) open(ctx context.Context, token eldest.Token, l message) error {
	l.Token = token
	entry := s.entry
	entry.Value = l.encode()
	var box requestkey.Key
	err := s.policy.Until(ctx, func(once context.Context) (err error) {
		box, err = requestkey.Write(once, s.cfg.KV, entry, token)
		if errors.Is(err, eldest.ErrDeposed) {
			return retryrpc.Final(err)
		}
		return err
	})
	switch {
	case errors.Is(err, eldest.ErrDeposed):
		// The candidate will notice that in a moment; until then this token has no request key.
		s.token = token
		return nil
	case err != nil:
		return err
	}
	s.box, s.token = box, token
	serial.Call(&s.hooks, s.cfg.Hooks.Opened, OpenedEvent{Election: s.entry.Election, Key: s.key, Token: token, At: time.Now()})
	return nil
}

// close deletes the request key, if there is one, with a short time limit and a context of its own,
// because the caller's has often ended. If that fails the key is deleted with the lease.
func (s *serving) close(ctx context.Context) {
	box := s.box
	s.box, s.token = requestkey.Key{}, 0
	if box.Mod == 0 || s.cfg.Session.Err() != nil {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(s.cfg.Session.Context(), cancel)()
	_ = requestkey.Delete(late, s.cfg.KV, s.entry.Election, s.entry.Lease, box.Created)
}

// news is the state of a request key at an etcd revision.
type news struct {
	box requestkey.Key
	at  int64
	// back means that etcd's history went back to this state, or to an earlier one that was not
	// processed: etcd was restored from a backup.
	back bool
}

// watch delivers the newest state of the request key after each write.
func (s *serving) watch(ctx context.Context, boxes chan news) error {
	source := &watch.Source{
		KV: s.cfg.KV, Watcher: s.cfg.Watcher,
		Backoff: s.cfg.Backoff, Timeout: s.cfg.Timeout, WatchCheck: s.cfg.WatchCheck,
	}
	box := keys.Request(s.entry.Election, s.entry.Lease)
	var newest int64 // mod revision of the last delivered state; 0 if there was no key
	var known int64  // revision of that state
	deliver := func(kv *mvccpb.KeyValue, at int64) {
		n := news{box: requestkey.KeyOf(kv), at: at, back: at < known}
		newest, known = n.box.Mod, at
		select {
		case older := <-boxes:
			n.back = n.back || older.back
		default:
		}
		boxes <- n // never blocks: only this goroutine sends
	}
	return source.Follow(ctx, watch.Target{
		Key: box,
		Snapshot: func(resp *clientv3.GetResponse) bool {
			var kv *mvccpb.KeyValue
			if len(resp.Kvs) > 0 {
				kv = resp.Kvs[0]
			}
			deliver(kv, resp.Header.Revision)
			return false
		},
		Change: func(at int64, events []*clientv3.Event) bool {
			last := events[len(events)-1]
			if last.Type == mvccpb.DELETE {
				deliver(nil, at)
			} else {
				deliver(last.Kv, at)
			}
			return false
		},
		Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
			return clientv3.OpGet(box, clientv3.WithKeysOnly()), func(answer clientv3.OpResponse) bool {
				kvs := answer.Get().Kvs
				return len(kvs) == 0 && newest == 0 || len(kvs) > 0 && kvs[0].ModRevision <= newest
			}
		},
	})
}
