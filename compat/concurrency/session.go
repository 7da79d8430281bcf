package concurrency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/clockctx"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/lease"
)

// Session is a lease that is renewed until the session ends: by Orphan or Close, with its context
// or its client, when the lease is lost, or when the key of an election that it leads is deleted by
// others. It is made by NewSession. All methods are safe for concurrent use.
//
// Invariant: Done is closed before etcd can expire the lease (see package lease).
type Session struct {
	client *clientv3.Client
	opts   *sessionOptions
	id     clientv3.LeaseID
	ctx    context.Context
	cancel context.CancelCauseFunc
	// lease is nil if the lease to be resumed did not exist any more.
	lease *lease.Session
	done  <-chan struct{} // closed when the lease is no longer renewed
	over  chan struct{}   // closed when the session's own goroutine has ended
	// source provides the watches of the session's elections and mutexes.
	source *watch.Source

	mu sync.Mutex
	// released is true if the program ended the session: another session of the lease may keep its
	// keys alive, so they may still be in elections.
	released bool
	// failed is the reason why the session was lost; nil before, and if it was released.
	failed error
	group  *group // the candidates; nil while there are none
}

var errReleased = fmt.Errorf("%w: the session was orphaned, or its context has ended", eldest.ErrClosed)

// NewSession grants a lease, or resumes one (WithLease), and keeps it alive. It blocks until etcd
// has responded, or until the context of WithContext or that of the client ends, and then returns
// the context's error (but see WithLease); if etcd refuses, it returns etcd's error. If the client
// was assembled without a Cluster, no majority confirms the renewals (lease.Unconfirmed).
func NewSession(client *clientv3.Client, opts ...SessionOption) (*Session, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	}
	o := &sessionOptions{ttl: defaultTTL, ctx: client.Ctx()}
	logger := client.GetLogger()
	if logger == nil { // the client was assembled from parts
		logger = zap.NewNop()
	}
	for _, option := range opts {
		option(o, logger)
	}
	if o.ctx == nil {
		return nil, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	kept, err := acquire(client, o)
	if err != nil {
		return nil, plain(o.ctx, client, err)
	}
	s := &Session{client: client, opts: o, id: o.leaseID, lease: kept, over: make(chan struct{})}
	s.source = s.newSource()
	s.ctx, s.cancel = context.WithCancelCause(o.ctx)
	if kept != nil {
		s.id = kept.ID()
	}
	if kept == nil {
		s.released = true
		s.cancel(fmt.Errorf("%w: the lease does not exist", eldest.ErrSessionLost))
		s.done = s.ctx.Done()
		close(s.over)
	} else {
		s.done = kept.Done()
		go s.run()
	}
	return s, nil
}

// takeUp is how long a lease to be resumed may remain unconfirmed: as long as etcd's client waits
// for its first renewal.
const takeUp = 5 * time.Second

// acquire returns the session of the lease; nil if the lease to be resumed is not available.
func acquire(client *clientv3.Client, o *sessionOptions) (*lease.Session, error) {
	// Shared: the lease may have been handed to another session or process, whose keys must not be
	// deleted because this session has lost the lease.
	cfg := lease.Config{Lease: client, Options: lease.Options{TTL: time.Duration(o.ttl) * time.Second, Shared: true, Clock: clockctx.Of(o.ctx)}}
	if client.Cluster == nil { // assembled from parts: no member list to ask
		cfg.Majority = lease.Unconfirmed{}
	}
	switch {
	case o.leaseID == clientv3.NoLease && o.ttl <= int(lease.MaxTTL/time.Second):
		return lease.Open(o.ctx, cfg)
	case o.leaseID == clientv3.NoLease:
		// The TTL is longer than package lease allows; etcd's package has no limit of its own.
		id, err := grant(o.ctx, client, o.ttl)
		if err != nil {
			return nil, err
		}
		return lease.Resume(o.ctx, cfg, id)
	}
	if o.leaseID < 0 {
		return nil, nil // no lease has such an ID: etcd's own servers pass it when they need no lease
	}
	ctx, cancel := context.WithTimeout(o.ctx, takeUp)
	defer cancel()
	kept, err := lease.Resume(ctx, cfg, o.leaseID)
	switch {
	case err != nil && life(client).Err() != nil:
		return nil, clientv3.ErrKeepAliveHalted{Reason: life(client).Err()}
	case err != nil && (errors.Is(err, eldest.ErrSessionLost) || ctx.Err() != nil):
		return nil, nil // as documented: a session that is done, and no error
	}
	return kept, err
}

func grant(ctx context.Context, client *clientv3.Client, seconds int) (id clientv3.LeaseID, err error) {
	err = policy(client).Until(ctx, func(once context.Context) error {
		resp, err := client.Grant(once, int64(seconds))
		if err == nil {
			id = resp.ID
		}
		return err
	})
	return id, err
}

// run ends the session when its lease, its context or its client ends.
func (s *Session) run() {
	defer close(s.over)
	select {
	case <-s.done:
	case <-s.ctx.Done():
	case <-life(s.client).Done():
	}
	s.release()
}

// release stops the renewal in this process, as lost if the session is lost, otherwise as released.
func (s *Session) release() {
	if s.lease == nil {
		return
	}
	_ = s.lost() // reads the clock
	s.mu.Lock()
	err, g := s.failed, s.group
	lost := err != nil
	if !lost {
		s.released, err = true, errReleased
	}
	s.mu.Unlock()
	s.cancel(err)
	s.lease.Abandon()
	switch {
	case g == nil:
	case lost:
		g.end(err)
	default:
		g.quiet()
	}
}

// lost reads the clock and returns why the session was lost; nil while it lives and after
// it was released.
func (s *Session) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && !s.released {
		s.failed = s.lease.Err()
	}
	return s.failed
}

// fail ends the session as lost. Done is closed before the context ends, so that a program that
// waits for the context finds Done closed.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.failed == nil && !s.released {
		s.failed = err
		s.lease.Forfeit(err) // before failed can be read
	}
	s.mu.Unlock()
	s.cancel(err) // which ends run
}

// isReleased reports whether the session has ended, or was never alive, and was not lost.
func (s *Session) isReleased() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released
}

// ttl returns the TTL that etcd has granted; if the lease was not available, that of WithTTL.
func (s *Session) ttl() time.Duration {
	if s.lease == nil {
		return time.Duration(min(int64(s.opts.ttl), math.MaxInt64/int64(time.Second))) * time.Second
	}
	return s.lease.TTL()
}

// newSource returns the source of the session's watches.
func (s *Session) newSource() *watch.Source {
	recheck := 5 * time.Second
	if s.lease != nil {
		recheck = min(recheck, s.lease.TTL()/2)
	}
	return &watch.Source{KV: s.client, Watcher: s.client, Backoff: retry.Default(), Timeout: requestTimeout, WatchCheck: recheck}
}

// Client returns the client that the session was made with.
func (s *Session) Client() *clientv3.Client { return s.client }

// Lease returns the ID of the session's lease.
func (s *Session) Lease() clientv3.LeaseID { return s.id }

// Ctx returns a context that carries the values of WithContext's and ends with the session;
// context.Cause returns the reason.
func (s *Session) Ctx() context.Context {
	if err := s.lost(); err != nil {
		s.cancel(err)
	}
	return s.ctx
}

// Done returns a channel that is closed when the session ends: at the latest at its deadline, which
// is before etcd can expire the lease. The call itself reads the clock, so that after a stop of the
// process the channel is already closed if the deadline has passed.
func (s *Session) Done() <-chan struct{} {
	_ = s.lost()
	return s.done
}

// Orphan ends the session without a request to etcd: the lease is no longer renewed here, and lives
// until it expires, or in the session that has resumed it. It returns at once, when Done is closed.
func (s *Session) Orphan() {
	s.release()
	<-s.over
}

// Close calls Orphan and revokes the lease. It blocks until etcd has responded, for at most the
// TTL, or until the context of WithContext ends. If the lease does not exist any more, it returns
// etcd's error for that, like etcd's package.
func (s *Session) Close() error {
	s.Orphan()
	s.mu.Lock()
	g := s.group
	s.mu.Unlock()
	if g != nil {
		g.end(errReleased)
		_ = g.loop.Wait(context.Background())
	}
	ctx, cancel := context.WithTimeout(s.opts.ctx, s.ttl())
	defer cancel()
	again, refused := false, true
	past.Revoking(int64(s.id)) // until etcd has responded, no session of this process resumes the lease
	err := policy(s.client).Until(ctx, func(once context.Context) error {
		_, err := s.client.Revoke(once, s.id)
		refused = refused && rpcerr.Definite(err)
		if again && rpcerr.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil // an earlier attempt revoked it, and its reply was lost
		}
		again = again || !rpcerr.Definite(err)
		return err
	})
	switch {
	case err == nil || rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
		past.Forget(int64(s.id))
	case refused:
		past.Refused(int64(s.id))
	}
	return plain(ctx, s.client, err)
}
