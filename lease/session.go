package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/renewal"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/serial"
)

// State is the state of a session's lease. It changes between Alive and AtRisk any number of times,
// then to Lost permanently.
type State uint8

const (
	// Alive means that the lease is certain until the deadline, and renewals succeed.
	Alive State = iota
	// AtRisk means that a renewal is overdue, but the deadline has not passed.
	AtRisk
	// Lost means that the lease is no longer certain, or does not exist.
	Lost
)

// String returns "alive", "at-risk" or "lost".
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case AtRisk:
		return "at-risk"
	default:
		return "lost"
	}
}

// Status is a session's state at one moment.
type Status struct {
	// State is the state, after a comparison of the deadline with the clock.
	State State
	// Remaining is the time for which the lease is still certain; 0 when Lost.
	Remaining time.Duration
	// Cause is the reason why the session is Lost; nil before.
	Cause error
}

// Session is the client side of one lease, made by Open or Resume and ended by
// Close or Abandon, one of which must be called. All methods are safe for
// concurrent use.
//
// Invariant: once the state is Lost, ctx has ended, and neither ever changes.
type Session struct {
	cfg Config
	id  clientv3.LeaseID
	ctx context.Context // ends with the session
	end context.CancelCauseFunc

	mu         sync.Mutex
	state      core.Session
	attempt    *attempt      // the attempt in progress; nil if there is none
	timer      *time.Timer   // fires when the machine has to read the clock
	wake       time.Duration // the reading of the clock for which it is set
	candidates *loop.Session
	client     *renewal.Client
	noRevoke   context.CancelFunc // ends the revocation early; nil if there is none

	hooks   *serial.Queue
	tasks   sync.WaitGroup // requests; none begins after the end
	done    chan struct{}  // closed when the session has ended and nothing runs any more
	revoked error          // result of the revocation; valid once done is closed
}

// newSession starts the session of a lease that was granted or renewed by a request sent when the
// clock read sent. fresh means that it was granted.
func newSession(cfg Config, id clientv3.LeaseID, r core.Rhythm, sent time.Duration, fresh bool, hooks *serial.Queue) *Session {
	ctx, end := context.WithCancelCause(context.Background())
	s := &Session{cfg: cfg, id: id, ctx: ctx, end: end, hooks: hooks, done: make(chan struct{})}
	s.candidates = loop.NewSession(ctx, int64(id), s.heartbeats(fresh), func() { _ = s.Holds(0) })
	s.client = renewal.Of(cfg.Lease, cfg.Majority)
	s.mu.Lock()
	now := cfg.Clock.Now()
	s.state = core.Opened(r, sent, now, spread(r), cfg.Shared)
	s.timer = time.AfterFunc(min(s.state.Next, s.state.Deadline)-now, s.tick)
	// Only now, because the hook receives the session and may use it at once. And before the mutex
	// is unlocked, so that Lost cannot be called before Opened if the deadline passes at once.
	serial.Call(s.hooks, cfg.Hooks.Opened, OpenedEvent{Session: s})
	s.client.Stream.Join(member{s})
	cfg.Keeper.Hold(id, r.TTL)
	s.mu.Unlock()
	return s
}

// spread returns the pause after a renewal: jitter prevents all clients from renewing at once.
func spread(r core.Rhythm) time.Duration { return retry.Spread(r.Every, r.Every/10) }

// ID returns the lease's ID.
func (s *Session) ID() clientv3.LeaseID { return s.id }

func init() { loop.Of = func(session any) *loop.Session { return session.(*Session).candidates } }

// TTL returns the TTL that the server last granted.
func (s *Session) TTL() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Rhythm.TTL
}

// Context returns a context that ends with the session; its cause is the reason: an error that wraps
// eldest.ErrSessionLost (deadline passed, lease expired or revoked) or eldest.ErrClosed (Close,
// Abandon).
func (s *Session) Context() context.Context { return s.ctx }

// Done returns a channel that is closed when the session ends.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err reads the clock and returns nil until the session has ended, then why it ended.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(core.SessionEvent{Kind: core.Clock})
	return context.Cause(s.ctx)
}

// Status reads the clock and returns the status at this moment.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.step(core.SessionEvent{Kind: core.Clock})
	switch {
	case s.state.Stage == core.Ended:
		return Status{State: Lost, Cause: context.Cause(s.ctx)}
	case s.state.Failures > 0:
		return Status{State: AtRisk, Remaining: s.state.Deadline - now}
	default:
		return Status{State: Alive, Remaining: s.state.Deadline - now}
	}
}

// Holds reports whether the lease certainly exists for another d, so that an action that takes at
// most d from now is over before etcd can expire it, unless a client revokes it. It reads the clock
// and sends nothing. The first call after the process or the machine was stopped is already correct
// (G3).
func (s *Session) Holds(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Stage == core.Ended {
		return false
	}
	now := s.cfg.Clock.Now()
	if now >= s.state.Deadline {
		s.step(core.SessionEvent{Kind: core.Clock})
		return false
	}
	return s.state.Deadline-now > d
}

// Dropped returns how many calls of Config.Hooks were dropped so far because a thousand calls
// waited for a hook that blocks.
func (s *Session) Dropped() int { return s.hooks.Dropped() }

// Close ends the session and revokes its lease, which deletes its keys at once. The session's
// context ends before anything is sent. Close blocks until the server has confirmed, the granted
// TTL has passed, or ctx ends; in the last case it returns ctx's error and the revocation continues
// in the background, for at most one TTL, and Close may be called again to wait for it. If etcd did
// not answer for the TTL, the error wraps eldest.ErrUnavailable, and the lease expires by itself:
// it has expired, or will one TTL after etcd has a leader again. If the lease no longer exists Close
// succeeds, and so does every Close after a successful one, and one that Abandon cancels. Close also
// waits for hooks to return, until ctx ends.
//
// The context with which the session was opened may have ended; ctx must not have: otherwise Close
// does not wait.
func (s *Session) Close(ctx context.Context) error {
	if ctx == nil {
		return s.failed("close session", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	s.do(core.SessionEvent{Kind: core.Closed})
	if err := retry.Wait(ctx, s.done); err != nil {
		return s.failed("close session", err)
	}
	// The context of the removals of keys has ended; Close only waits for them.
	if err := s.candidates.Wait(ctx); err != nil {
		return s.failed("close session", err)
	}
	_ = s.hooks.Wait(ctx)
	if s.revoked != nil {
		return s.failed("close session", s.revoked)
	}
	return nil
}

// Abandon ends the session in this process only: it stops renewing, sends nothing, and the lease
// remains until it expires or is resumed. The key of a candidate that waits or leads, and its
// token, remain for Resume. A revocation in progress, after a loss or a Close, is cancelled, and so
// is the removal of a key whose candidate or leader has left; requests that were sent may still
// arrive. So in this process Resume refuses a lease whose revocation was sent, and a candidate of a
// resumed session does not adopt a key whose removal was sent: it registers again. Abandon waits
// for the session's goroutines, which end at once (if the user's Backoff, or a candidate's
// ShouldYield or Ordering, returns at once), but not for hooks. Closing an abandoned session is
// harmless and sends nothing. With heartbeats a successor evicts the abandoned leader, unless its
// session is resumed within Heartbeat.Timeout.
func (s *Session) Abandon() {
	s.do(core.SessionEvent{Kind: core.Abandoned})
	s.mu.Lock()
	if s.noRevoke != nil {
		s.noRevoke()
	}
	s.mu.Unlock()
	<-s.done
	_ = s.candidates.Wait(context.Background())
}

// Forfeit ends the session as lost before its deadline, for an owner that was stopped because
// renewals failed and whose work takes time to stop. The cause wraps eldest.ErrSessionLost and, if
// that is not nil, reason. The consequences are those of every loss, including the revocation in
// the background. Forfeit does not block. A session that has ended already keeps its cause.
func (s *Session) Forfeit(reason error) { s.do(core.SessionEvent{Kind: core.Forfeited, Err: reason}) }

func (s *Session) failed(op string, err error) error {
	return &eldest.OpError{Op: op, Lease: int64(s.id), Err: err}
}
