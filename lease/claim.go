package lease

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// use is what a session knows of one name: that somebody holds it, or that
// somebody tidies up after the last holder.
//
// Invariant: held is set, or the other fields are, never both.
type use struct {
	held bool
	// removed is closed when the tender has done what must be done before the
	// next claim.
	removed chan struct{}
	// stop ends what the tender does after that; done is closed when it has.
	stop context.CancelFunc
	done chan struct{}
}

// Claim reserves name among the users of the session in this process: two
// candidates that share a lease in one election would share a key. It returns
// eldest.ErrCampaigning while name is held, and the session's cause once it has
// ended. While a tender removes what the last holder left, Claim blocks until
// that is done or ctx ends. A sweep is stopped: sweeping reports that name was ever
// tended with one, so that the claimant must do so again. The claim ends with
// Release or Tend.
func (s *Session) Claim(ctx context.Context, name string) (sweeping bool, err error) {
	if ctx == nil {
		return false, s.failed("claim", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.state == Lost {
			return false, context.Cause(s.ctx)
		}
		u := s.uses[name]
		switch {
		case u == nil:
			s.uses[name] = &use{held: true}
			return s.swept[name], nil
		case u.held:
			return false, fmt.Errorf("%w: the session already has a candidate there", eldest.ErrCampaigning)
		}
		s.mu.Unlock()
		err := retry.Wait(ctx, u.removed)
		if err == nil {
			u.stop()
			<-u.done
		}
		s.mu.Lock()
		if err != nil {
			return false, err
		}
	}
}

// Release gives up the claim on name.
func (s *Session) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uses[name]; u != nil && u.held {
		delete(s.uses, name)
	}
}

// Tend gives up the claim on name and tidies up after it in the background: first
// remove runs, for what must be gone before anybody claims name again, then
// sweep, if not nil, for what may yet turn up. The contexts of both end with the
// session, which takes its keys with it; that of sweep also when name is claimed
// again. They must return then. Close and Abandon wait for them. Tend returns
// false, and calls nothing, if the session has ended already.
func (s *Session) Tend(name string, remove, sweep func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Lost {
		delete(s.uses, name)
		return false
	}
	ctx, stop := context.WithCancel(s.ctx)
	u := &use{removed: make(chan struct{}), stop: stop, done: make(chan struct{})}
	s.uses[name] = u
	if sweep != nil {
		s.swept[name] = true
	}
	go func() {
		defer close(u.done)
		defer stop()
		remove(s.ctx)
		close(u.removed)
		if sweep != nil {
			sweep(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses[name] == u {
			delete(s.uses, name)
		}
	}()
	return true
}

// Leave notes that a life of the key name is over here, and that etcd has refused to remove
// it: the key is still there, with token. It is for the function that Tend calls to
// remove it.
func (s *Session) Leave(name string, token eldest.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[name] = max(s.left[name], token)
}

// Left returns the newest token of Leave under name, 0 if there is none. Whoever has claimed
// name and finds the key with it, or an older one, must not adopt it: the life to which
// the token belonged has ended, in whichever hands, and must not come back (G2).
//
// What was removed needs no such note, for no token comes twice. So a session that lives
// long remembers no more names than it has left keys behind. Nor does a session of Resume
// remember any: it is there to take over what it finds.
func (s *Session) Left(name string) eldest.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[name]
}

// Settled blocks until the last holder of name left nothing that is known of, or
// ctx ends; then it returns the context's cause.
func (s *Session) Settled(ctx context.Context, name string) error {
	if ctx == nil {
		return s.failed("settle", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	s.mu.Lock()
	u := s.uses[name]
	s.mu.Unlock()
	if u == nil || u.held {
		return nil
	}
	return retry.Wait(ctx, u.removed)
}

// waitTenders waits for every tender; their contexts have ended.
func (s *Session) waitTenders(ctx context.Context) error {
	s.mu.Lock()
	var tenders []chan struct{}
	for _, u := range s.uses {
		if !u.held {
			tenders = append(tenders, u.done)
		}
	}
	s.mu.Unlock()
	for _, done := range tenders {
		if err := retry.Wait(ctx, done); err != nil {
			return err
		}
	}
	return nil
}
