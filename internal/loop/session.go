package loop

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
	"github.com/eldest-io/eldest/internal/watch"
)

// Of returns the candidates of a *lease.Session, for package election. Package lease sets it: a
// method would be part of the public API.
var Of func(session any) *Session

// Session is the candidates of one session of a lease. Made by NewSession.
type Session struct {
	lease int64
	past  *past.Lease
	look  func() // reads the clock, and ends the session if its deadline has passed
	// ctx ends with the session: nothing may be sent afterwards.
	ctx   context.Context //nolint:containedctx // the session's life
	tasks tasks           // requests, reads and watches
	beats Heartbeats

	// mu guards the following fields, and all fields of the candidates and their users. It is taken
	// after the mutex of lease.Session, and before those of the queues of hooks.
	mu         sync.Mutex
	candidates map[Name]*Candidate
	streams    []watching
	heart      *heart // nil before the first candidate, and without heartbeats
	ears       map[string]*ear
	ended      bool
}

// Name is a key as one client sees it: through a namespace the same name is another key of etcd.
// Client must be comparable.
type Name struct {
	Client any
	Key    string
}

// Comparable returns a client as Name takes it. If its type cannot be compared, it returns nil: all
// such clients count as equal.
func Comparable(client any) any {
	if !reflect.ValueOf(client).Comparable() {
		return nil
	}
	return client
}

// NewSession makes the candidates of a session. ctx ends with the session; End must be called then.
// look reads the clock and ends a session whose deadline has passed. It is called without the
// mutex, before each answer of etcd is handled, because the answer may be a win.
func NewSession(ctx context.Context, lease int64, beats Heartbeats, look func()) *Session {
	return &Session{lease: lease, past: past.Of(lease), look: look, beats: beats, ctx: ctx, candidates: make(map[Name]*Candidate), tasks: newTasks()}
}

// Doomed reports whether the key with this token was to be deleted, and may still exist. It needs no
// mutex.
func (s *Session) Doomed(token eldest.Token) bool { return s.past.Doomed(token) }

// Beats reports whether the session has heartbeats. It needs no mutex.
func (s *Session) Beats() bool { return s.beats.Pace.Timeout > 0 }

// Look reads the clock for the heartbeats: a deadline that has passed ends leading contexts. The
// caller holds the mutex.
func (s *Session) Look() {
	s.heart.look()
}

// Lock takes the session's mutex. The caller must not block before Unlock.
func (s *Session) Lock() { s.mu.Lock() }

// Unlock releases the session's mutex.
func (s *Session) Unlock() { s.mu.Unlock() }

// Take makes a user the owner of the candidate with a name. It sends nothing. Errors:
// eldest.ErrCampaigning while another user owns it; the session's cause once it has ended;
// eldest.ErrInvalid if there are heartbeats and the client is not that of the candidates before.
// The caller holds the mutex.
func (s *Session) Take(name Name, user *User) (*Candidate, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	heart, err := s.heartFor(name.Client, user.KV)
	if err != nil {
		return nil, err
	}
	c := s.candidates[name]
	switch {
	case c == nil:
		c = &Candidate{session: s, name: name, heart: heart}
		c.state.Beats = heart != nil
		if user.Shared {
			c.shared = new(shared)
		}
		if s.past.Owed(name.Key) && !user.Shared {
			c.state = core.Candidate{Owed: true, Beats: heart != nil}.Resumed()
		}
		s.candidates[name] = c
	case c.user != user && c.Busy():
		return nil, fmt.Errorf("%w: the session already has a candidate with this key", eldest.ErrCampaigning)
	}
	c.user, c.state.Yields = user, user.Survey != nil
	return c, nil
}

// End notes the end of the session, once. It is called when the session's context has ended.
// Nothing is sent afterwards: the keys are left to the next session of the lease, or are deleted
// with the lease. It does not block.
func (s *Session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	for _, c := range s.candidates {
		c.Do(core.Event{Kind: core.SessionEnded, Err: context.Cause(s.ctx)})
	}
	s.ended = true
	if s.heart != nil {
		s.heart.timer.Stop()
	}
	s.past.Done()
	for _, w := range s.streams {
		s.tasks.run(w.on.Release)
	}
	s.tasks.last()
}

// watching is a stream, and the parameters of the sources that use it.
type watching struct {
	kv, watcher     any
	check, patience time.Duration
	on              *stream.Shared
}

// stream returns the stream on which a source watches. The caller holds the mutex.
func (s *Session) stream(source *watch.Source) *stream.Stream {
	w := watching{source.KV, source.Watcher, source.WatchCheck, source.Timeout, nil}
	if !reflect.ValueOf(w).Comparable() {
		w = watching{kv: source} // counts as a client of its own
	}
	for _, old := range s.streams { // one, nearly always
		if w.on = old.on; w == old {
			return w.on.Stream
		}
	}
	w.on = source.Stream()
	s.streams = append(s.streams, w)
	return w.on.Stream
}

// Go runs f on a goroutine for which Wait waits. After End it does nothing. It does not block.
func (s *Session) Go(f func()) { s.tasks.run(f) }

// Wait blocks until End was called and nothing is under way any more, or ctx ends: then it returns
// the context's cause.
func (s *Session) Wait(ctx context.Context) error { return retry.Wait(ctx, s.tasks.done) }
