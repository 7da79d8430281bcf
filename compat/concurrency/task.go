package concurrency

import (
	"context"
	"time"
)

// task is something that a session has going in the background.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
	// bound says that it ends as soon as the lease is no longer renewed.
	bound bool
}

// background runs f until the session is lost or closed, or its client is. When the session
// is released, what is bound to it ends at once, and Orphan waits for that; the rest has
// another TTL, for a key that is given up must go although the lease may live on. f must
// return when its context ends.
func (s *Session) background(bound bool, f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{done: make(chan struct{}), bound: bound}
	ctx, cancel := context.WithCancel(life(s.client))
	t.cancel = cancel
	s.tasks[t] = struct{}{}
	renewed := s.ctx // ends when the lease is no longer renewed
	if s.lease != nil {
		renewed = s.lease.Context()
	}
	go func() {
		defer close(t.done)
		defer cancel()
		defer context.AfterFunc(renewed, func() {
			if bound || s.lost() != nil {
				cancel()
			}
		})()
		if !bound {
			defer s.linger(renewed, cancel)()
		}
		f(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tasks, t)
	}()
}

// linger calls cancel a TTL after the lease was no longer renewed; stop forgets about it.
func (s *Session) linger(renewed context.Context, cancel context.CancelFunc) (stop func()) {
	ttl := time.Duration(s.opts.ttl) * time.Second
	timer := time.AfterFunc(ttl, cancel)
	timer.Stop() // until then
	detach := context.AfterFunc(renewed, func() { timer.Reset(ttl) })
	return func() {
		detach()
		timer.Stop()
	}
}

// endTasks waits for the tasks that are bound to the lease's renewal, which has ended, or
// ends all of them.
func (s *Session) endTasks(all bool) {
	s.mu.Lock()
	var ending []*task
	for t := range s.tasks {
		if all {
			t.cancel()
		}
		if all || t.bound {
			ending = append(ending, t)
		}
	}
	s.mu.Unlock()
	for _, t := range ending {
		<-t.done
	}
}

// during returns ctx, ended by the loss of the session as well, with its cause. That a
// session is released ends nothing: who has taken the lease over keeps the keys.
func (s *Session) during(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	live, cancel := context.WithCancelCause(ctx)
	if s.lease == nil {
		return live, cancel
	}
	detach := context.AfterFunc(s.lease.Context(), func() {
		if err := s.lost(); err != nil {
			cancel(err)
		}
	})
	return live, func(err error) {
		detach()
		cancel(err)
	}
}
