package concurrency

import (
	"context"

	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
)

// group has the candidates of a session, by their keys. A released session can still campaign, and
// its last campaign cannot be recognised. So its group ends when no call needs it, and the next
// call makes another one: leaderships continue in etcd, and their handles have the tokens.
type group struct {
	session *Session
	loop    *loop.Session
	ctx     context.Context // ends with it
	cancel  context.CancelCauseFunc
	calls   int  // guarded by the session's mu
	late    bool // made after the end of the session
	// candidacies is guarded by the mutex of loop, which is taken before the session's mu.
	candidacies map[string]*candidacy
}

// candidacy returns the candidacy of a key of the election, for one call; done must be called.
func (s *Session) candidacy(election, key string) (c *candidacy, done func()) {
	s.mu.Lock()
	g := s.group
	if g == nil {
		g = &group{session: s, late: s.released || s.failed != nil, candidacies: make(map[string]*candidacy)}
		g.ctx, g.cancel = context.WithCancelCause(context.Background())
		g.loop = loop.NewSession(g.ctx, int64(s.id), loop.Heartbeats{}, g.look)
		s.group = g
	}
	g.calls++
	s.mu.Unlock()
	g.loop.Lock()
	defer g.loop.Unlock()
	c = g.candidacies[key]
	if c == nil {
		c = newCandidacy(g, election, key)
		g.candidacies[key] = c
	}
	c.users++
	return c, func() { g.done(c) }
}

func (g *group) done(c *candidacy) {
	g.loop.Lock()
	if c.users--; c.machine != nil {
		c.settle(c.state())
	} else if c.users == 0 {
		delete(g.candidacies, c.name.Key)
	}
	g.loop.Unlock()
	g.session.mu.Lock()
	g.calls--
	over := g.calls == 0 && (g.session.released || g.session.failed != nil)
	g.session.mu.Unlock()
	if over {
		g.quiet()
	}
}

// look reads the clock, and ends the group if the session is lost by then.
func (g *group) look() {
	if err := g.session.lost(); err != nil && !g.late {
		g.end(err)
	}
}

// during returns a context that ends with ctx or with the group, and so with the loss of the
// session. The release of a session ends nothing: a session that has resumed the lease keeps the
// keys.
func (g *group) during(ctx context.Context) (live context.Context, end func()) {
	live, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	return live, func() { detach(); cancel(nil) }
}

func (g *group) machines() (all []*loop.Candidate) {
	g.loop.Lock()
	defer g.loop.Unlock()
	for _, c := range g.candidacies {
		if c.machine != nil {
			all = append(all, c.machine)
		}
	}
	return all
}

// end ends the group; it does not wait for deletions by its candidates. It may be called again.
func (g *group) end(cause error) {
	g.session.mu.Lock()
	g.leave()
	g.session.mu.Unlock()
	g.cancel(cause)
	g.loop.End()
}

// leave prevents calls from joining the group. The caller holds the session's mu.
func (g *group) leave() {
	if g.session.group == g {
		g.session.group = nil
	}
}

// quiet ends the group of a session that has ended, when no call needs it. Deletions of keys have a
// TTL to complete. It does not block.
func (g *group) quiet() {
	s := g.session
	g.loop.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, s.ttl())
		defer cancel()
		defer context.AfterFunc(life(s.client), cancel)()
		for _, m := range g.machines() {
			_ = m.Await(ctx, func() bool { return m.State().Phase != core.Leaving && m.State().Phase != core.Entering })
		}
		s.mu.Lock()
		over := g.calls == 0 // otherwise the last of them calls quiet
		if over {
			g.leave()
		}
		s.mu.Unlock()
		if over {
			g.end(errReleased)
		}
	})
}
