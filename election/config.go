package election

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// MaxValue is the largest value of a candidate, in bytes. etcd takes requests of
// up to 1.5 MiB by default; this leaves room for the rest of the request.
const MaxValue = 1 << 20

// Config is the configuration of a candidate. Election, Session, KV and Watcher are required. New
// copies it, including Value.
type Config struct {
	// Election is the name: any bytes but '/', up to keys.MaxName of them.
	Election string
	// Session has the lease that the candidate's key is bound to. Many candidates may share one
	// session, in different elections.
	Session *lease.Session
	// KV and Watcher are the RPC surface: a *clientv3.Client is both; so are
	// namespaced and fake clients. Both must see the same etcd as the session.
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Value is the value of the candidate's key: opaque bytes, at most MaxValue.
	Value []byte

	// Mutex is shared by candidates whose lead functions must not overlap; see Leadership.Lead. nil
	// means a mutex of the candidate's own.
	Mutex *Mutex
	// Drain is how long Leadership.Lead waits for a lead function of an earlier tenure to
	// return before it resigns. 0 means DefaultDrain.
	Drain time.Duration

	Options
}

// Options set how a candidate campaigns. The zero value has the default of each.
type Options struct {
	// Ordering is how candidates are queued. nil means txn.ByPointer.
	Ordering txn.Ordering
	// Timeout bounds each single request: a request to a member that does not respond costs this
	// long, then another member is asked. 0 means DefaultTimeout.
	Timeout time.Duration
	// WatchCheck is the time between two liveness checks of a watch: a read of one key. 0 means
	// half the session's TTL, at most 5 s; negative means no checks.
	WatchCheck time.Duration
	// Backoff returns the pause after the n-th failed attempt in a row, from 0. nil means doubling
	// from 25 ms to 1 s with jitter. A pause is at least 5 ms, whatever the function returns.
	Backoff func(attempt int) time.Duration
	// ShouldYield, if not nil, is called before a win, once the candidate is proven to be the
	// oldest and if other candidates exist. If it returns true the candidate requeues at the end of
	// the queue instead of leading, and continues to wait. Its arguments are the candidate itself
	// and the others, oldest first, with their values, as of one linearizable read: one more
	// request for each win, and two for each time that the candidate yields. Two candidates must
	// not yield to each other, or no candidate leads; ByPriority is a safe function. It is called
	// on a goroutine of its own, while the candidate waits: it must be quick. Try leads without
	// calling it. nil costs nothing.
	//
	// Keep the values small: all of them are in one reply, which must arrive within Timeout. If it
	// never does the oldest candidate repeats the read, and no candidate leads; Hooks.Retrying reports
	// that.
	ShouldYield func(own eldest.Candidate, others []eldest.Candidate) bool
	// Hooks are called for the candidate's events. See Hooks for the calling rules.
	Hooks Hooks
}

// DefaultTimeout bounds a single request unless Config.Timeout is set. etcd itself limits a
// request to 5 s plus two election timeouts; a healthy cluster answers in milliseconds.
const DefaultTimeout = 2 * time.Second

// DefaultDrain is how long a tenure waits for the lead function of an earlier one unless
// Config.Drain is set.
const DefaultDrain = 10 * time.Second

// Check returns the error that New would return, except for a missing Session, KV or Watcher, for
// callers that set those later. The error wraps eldest.ErrInvalid.
func (c Config) Check() error {
	if err := keys.Check(c.Election); err != nil {
		return err
	}
	switch {
	case c.Mutex != nil && c.Mutex.taken == nil:
		return fmt.Errorf("%w: Config.Mutex was not made by NewMutex", eldest.ErrInvalid)
	case c.Drain < 0:
		return fmt.Errorf("%w: Config.Drain %v is negative", eldest.ErrInvalid, c.Drain)
	}
	if err := c.Options.Check(); err != nil {
		return err
	}
	return checkValue(c.Value)
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
	case c.Session == nil:
		return c, fmt.Errorf("%w: Config.Session is nil", eldest.ErrInvalid)
	case loop.Of(c.Session) == nil:
		return c, fmt.Errorf("%w: Config.Session was not made by lease.Open or lease.Resume", eldest.ErrInvalid)
	case absent.KV(c.KV):
		return c, fmt.Errorf("%w: Config.KV is nil", eldest.ErrInvalid)
	case absent.Watcher(c.Watcher):
		return c, fmt.Errorf("%w: Config.Watcher is nil", eldest.ErrInvalid)
	}
	c.Value = append([]byte(nil), c.Value...)
	if c.Ordering == nil {
		c.Ordering = txn.ByPointer{}
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.WatchCheck == 0 {
		c.WatchCheck = min(c.Session.TTL()/2, 5*time.Second)
	}
	c.Backoff = retry.Or(c.Backoff, retry.Default())
	return c, nil
}

func (c Config) source() *watch.Source {
	return &watch.Source{
		KV: c.KV, Watcher: c.Watcher,
		Backoff: c.Backoff, Timeout: c.Timeout, WatchCheck: c.WatchCheck,
	}
}

func (c *Config) entry() txn.Entry {
	return txn.Entry{Election: c.Election, Lease: int64(c.Session.ID()), Value: c.Value}
}

func checkValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: the value has %d bytes, at most %d are allowed", eldest.ErrInvalid, len(value), MaxValue)
	}
	return nil
}
