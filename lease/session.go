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

// State is what a session knows of its lease. It goes Alive, AtRisk and back
// any number of times, then Lost for good.
type State uint8

const (
	// Alive says that the lease is certain until the deadline, and renewals succeed.
	Alive State = iota
	// AtRisk says that a renewal is overdue, but the deadline is ahead.
	AtRisk
	// Lost says that the lease is no longer certain, or certainly gone.
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
	// State is the state; the deadline has been compared with the clock.
	State State
	// Remaining is the time for which the lease is still certain; 0 when Lost.
	Remaining time.Duration
	// Cause says why the session is Lost; nil before.
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
	attempt    *attempt      // the request under way; nil: none
	timer      *time.Timer   // goes off when the machine is to look at the clock
	wake       time.Duration // the reading for which it was set
	candidates *loop.Session
	client     *renewal.Client
	noRevoke   context.CancelFunc // ends the revocation early; nil: there is none

	hooks   *serial.Queue
	tasks   sync.WaitGroup // requests; none begins after the end
	done    chan struct{}  // closed when the session has ended and nothing runs any more
	revoked error          // result of the revocation; valid once done is closed
}

// newSession starts the session of a lease that was granted or renewed by a
// request sent at the reading sent. fresh says that it was granted.
func newSession(cfg Config, id clientv3.LeaseID, r core.Rhythm, sent time.Duration, fresh bool, hooks *serial.Queue) *Session {
	ctx, end := context.WithCancelCause(context.Background())
	s := &Session{cfg: cfg, id: id, ctx: ctx, end: end, hooks: hooks, done: make(chan struct{})}
	s.candidates = loop.NewSession(ctx, int64(id), s.heartbeats(fresh), func() { _ = s.Holds(0) })
	s.client = renewal.Of(cfg.Lease, cfg.Majority)
	s.mu.Lock()
	now := cfg.Clock.Now()
	s.state = core.Opened(r, sent, now, spread(r), cfg.Shared)
	s.timer = time.AfterFunc(min(s.state.Next, s.state.Deadline)-now, s.tick)
	// Only now: the hook is given the session and may use it at once. And before the
	// mutex is free, so that a deadline that passes at once is not told first.
	if opened := cfg.Hooks.Opened; opened != nil {
		s.hooks.Do(func() { opened(OpenedEvent{Session: s}) })
	}
	s.client.Stream.Join(member{s})
	cfg.Keeper.Hold(id, r.TTL)
	s.mu.Unlock()
	return s
}

// spread is the pause after a renewal: jitter keeps clients from renewing all at once.
func spread(r core.Rhythm) time.Duration { return retry.Spread(r.Every, r.Every/10) }

// ID returns the lease's ID.
func (s *Session) ID() clientv3.LeaseID { return s.id }

func init() { loop.Of = func(session any) *loop.Session { return session.(*Session).candidates } }

// TTL returns the TTL that the server granted last.
func (s *Session) TTL() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Rhythm.TTL
}

// Context returns a context that ends with the session; context.Cause says why:
// an error that wraps eldest.ErrSessionLost (deadline passed, lease gone) or
// eldest.ErrClosed (Close, Abandon).
func (s *Session) Context() context.Context { return s.ctx }

// Done returns a channel that is closed when the session ends.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err reads the clock and returns nil while the session lives, then why it ended.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(core.SessionEvent{Kind: core.Clock})
	return context.Cause(s.ctx)
}

// Status reads the clock and returns what is certain at this moment.
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

// Holds reports whether the lease certainly lives for another d: whether, unless
// somebody revokes it, an action that takes at most d from now is over before etcd
// can expire it. It
// reads the clock and sends nothing. After the process or the machine was
// stopped, the first call already tells the truth (G3).
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

// Dropped returns how many calls of Config.Hooks were dropped so far, because a
// thousand waited behind a hook that blocks.
func (s *Session) Dropped() int { return s.hooks.Dropped() }

// Close ends the session and revokes its lease, so that its keys go at once. The
// session's context ends before anything is sent. Close blocks until the server
// has confirmed, the granted TTL has passed, or ctx ends; in the last case
// it returns ctx's error and the revocation goes on in the background, for at
// most one TTL, and Close may be called again to wait for it. If etcd did not answer
// for the TTL, the error wraps eldest.ErrUnavailable, and the lease has expired by itself. A lease that is
// gone already is a success, and so is every further Close after one. Close also
// waits for hooks to return, as long as ctx lasts.
//
// Close does not need the context under which the session was opened to live,
// but ctx must: with one that has ended, nothing is waited for.
func (s *Session) Close(ctx context.Context) error {
	if ctx == nil {
		return s.failed("close session", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	s.do(core.SessionEvent{Kind: core.Closed})
	if err := retry.Wait(ctx, s.done); err != nil {
		return s.failed("close session", err)
	}
	// The context of what removes keys has ended; it is only waited for.
	if err := s.candidates.Wait(ctx); err != nil {
		return s.failed("close session", err)
	}
	_ = s.hooks.Wait(ctx)
	if s.revoked != nil {
		return s.failed("close session", s.revoked)
	}
	return nil
}

// Abandon ends the session on this side only: renewing stops, nothing is sent,
// and the lease lives on until it expires, for Resume or for nobody. The key of a
// candidate that waits or leads, and its token, is there for Resume. A revocation that is
// under way, after a loss or a Close, is given up, and so is the removal of a key whose
// candidate or leader has left; requests that were sent may still arrive. So in this
// process Resume refuses a lease whose revocation was sent, and a candidate of a resumed
// session does not take over a key whose removal was: it enters the queue anew. Abandon
// waits for the session's goroutines, which end at once (where a Backoff, or a candidate's ShouldYield
// or Queue, that the user gave returns at once), but not for hooks. Closing an
// abandoned session is harmless and sends nothing. With heartbeats a successor evicts the leader
// that was abandoned, unless it is resumed within Heartbeat.Timeout.
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

// Forfeit ends the session as lost, before its deadline: for an owner whose work takes
// time to stop, and was stopped because renewals failed. The cause wraps
// eldest.ErrSessionLost and reason; all that follows is what follows a loss, the
// revocation in the background included. It does not block, and a session that has ended
// already keeps its cause. A nil reason says nothing more.
func (s *Session) Forfeit(reason error) { s.do(core.SessionEvent{Kind: core.Forfeited, Err: reason}) }

func (s *Session) failed(op string, err error) error {
	return &eldest.OpError{Op: op, Lease: int64(s.id), Err: err}
}
