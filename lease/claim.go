package lease

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
)

// use is what a session knows of one name: that somebody holds it, or that
// somebody tidies up after the last holder.
//
// Invariant: held, or tended (stop and done set), never both.
type use struct {
	held bool
	stop context.CancelFunc
	done chan struct{} // closed when the tender has returned
}

// Claim reserves name among the users of the session in this process: two
// candidates that share a lease in one election would share a key. It returns
// eldest.ErrCampaigning while name is held and the session's cause once it has
// ended. If a tender works for name it is stopped, and Claim waits for it (it
// must return when its context ends). The claim ends with Release or Tend.
func (s *Session) Claim(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.state == Lost {
			return context.Cause(s.ctx)
		}
		u := s.uses[name]
		switch {
		case u == nil:
			s.uses[name] = &use{held: true}
			return nil
		case u.held:
			return fmt.Errorf("%w: the session already has a candidate there", eldest.ErrCampaigning)
		}
		u.stop()
		s.mu.Unlock()
		<-u.done
		s.mu.Lock()
		if s.uses[name] == u {
			delete(s.uses, name)
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

// Tend gives up the claim on name and has f tidy up after it in the background:
// remove a key whose removal was not confirmed. The context of f ends with the
// session, which takes the keys with it, and as soon as name is claimed again: f
// must return then. Close and Abandon wait for f.
func (s *Session) Tend(name string, f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Lost {
		delete(s.uses, name)
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	u := &use{stop: stop, done: make(chan struct{})}
	s.uses[name] = u
	go func() {
		defer close(u.done)
		defer stop()
		f(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses[name] == u {
			delete(s.uses, name)
		}
	}()
}

// Settled blocks until no tender works for name, or ctx ends; then it returns
// the context's cause.
func (s *Session) Settled(ctx context.Context, name string) error {
	s.mu.Lock()
	u := s.uses[name]
	s.mu.Unlock()
	if u == nil || u.held {
		return nil
	}
	return wait(ctx, u.done)
}

// waitTenders waits for every tender; their context has ended.
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
		if err := wait(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
