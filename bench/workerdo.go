package bench

import (
	"context"
)

// Open starts a session.
func (w *worker) Open(call workCall, _ *workAnswer) error {
	defer w.done(call)
	s, err := w.host.Open(call.ctx, call.Contender, call.TTL)
	return w.keep(call, &hosted{Session: s}, err)
}

// Observe gathers a crowd.
func (w *worker) Observe(call workCall, _ *workAnswer) error {
	defer w.done(call)
	c, err := w.host.Observe(call.ctx, call.Contender, call.Election, call.Size)
	return w.keep(call, c, err)
}

// Wire returns what the worker's client has sent and received.
func (w *worker) Wire(call workCall, answer *workAnswer) (err error) {
	defer w.done(call)
	answer.Wire, err = w.host.Wire(call.ctx)
	return err
}

// Shift moves the worker's client on.
func (w *worker) Shift(call workCall, _ *workAnswer) error {
	defer w.done(call)
	return w.host.Shift(call.ctx, call.By)
}

// Cut takes the network of the worker's client away, or gives it back.
func (w *worker) Cut(call workCall, _ *workAnswer) error {
	defer w.done(call)
	return w.host.Cut(call.ctx, call.Cut)
}

// Cancel ends the context of another call, if that is still under way.
func (w *worker) Cancel(call workCall, _ *workAnswer) error {
	defer w.done(call)
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.calls[call.Of]; cancel != nil {
		cancel()
	}
	return nil
}

// Candidate makes a candidate of a session.
func (w *worker) Candidate(call workCall, _ *workAnswer) error {
	return about(w, call, func(s *hosted) error {
		c, err := s.Candidate(call.Election, call.Value)
		if err == nil {
			w.mu.Lock()
			s.candidates = append(s.candidates, call.ID)
			w.mu.Unlock()
		}
		return w.keep(call, c, err)
	})
}

// Campaign has a candidate campaign: At is when it won.
func (w *worker) Campaign(call workCall, answer *workAnswer) error {
	return about(w, call, func(c Candidate) (err error) {
		if answer.At, err = lead(call.ctx, c); err == nil {
			answer.Key, answer.Tells = c.Key(), c.Lost() != nil
		}
		return err
	})
}

// Lost waits until a candidate is notified of its loss: At.
func (w *worker) Lost(call workCall, answer *workAnswer) error {
	return about(w, call, func(c Candidate) error {
		select {
		case answer.At = <-c.Lost():
			return nil
		case <-call.ctx.Done():
			return context.Cause(call.ctx)
		}
	})
}

// Resign has a candidate resign.
func (w *worker) Resign(call workCall, _ *workAnswer) error {
	return about(w, call, func(c Candidate) error { return c.Resign(call.ctx) })
}

// Put writes as a candidate.
func (w *worker) Put(call workCall, _ *workAnswer) error {
	return about(w, call, func(c Candidate) error { return c.Put(call.ctx, call.Key, call.Value) })
}

// Await waits for a crowd.
func (w *worker) Await(call workCall, answer *workAnswer) error {
	return about(w, call, func(c Crowd) (err error) {
		answer.Seen, err = c.Await(call.ctx, call.Key)
		return err
	})
}

// Close closes a session or a crowd, and forgets it: a long run must not fill the worker.
func (w *worker) Close(call workCall, _ *workAnswer) error {
	return about(w, call, func(open any) error {
		w.mu.Lock()
		delete(w.things, call.Of)
		if s, ok := open.(*hosted); ok {
			for _, c := range s.candidates {
				delete(w.things, c)
			}
		}
		w.mu.Unlock()
		return closeThing(call.ctx, open)
	})
}

// closeThing closes what has to be closed; a candidate's session does that for it.
func closeThing(ctx context.Context, open any) error {
	switch open := open.(type) {
	case *hosted:
		return open.Close(ctx)
	case Crowd:
		open.Close(ctx)
	}
	return nil
}
