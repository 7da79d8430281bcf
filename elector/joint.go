package elector

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
)

// joint is a session of a group, with its clients and the value of the node's keys.
type joint struct {
	*lease.Session
	clients Clients
	value   []byte
}

// session returns the session of the group, and opens one if none is alive. It blocks until there
// is a session or ctx ends; then it returns ctx's cause.
func (g *Group) session(ctx context.Context) (*joint, error) {
	select {
	case g.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-g.opening }()
	if g.joint != nil {
		if g.joint.Err() == nil {
			return g.joint, nil
		}
		g.end(g.joint)
		g.joint = nil
	}
	for attempt := 0; ; attempt++ {
		j, err := g.open(ctx)
		if err == nil {
			g.joint = j
			g.log.line(slog.LevelInfo, "group session opened", "lease", hex(j.Session), "ttl", j.TTL())
			return j, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		pause := g.cfg.Backoff(attempt)
		g.log.line(slog.LevelWarn, "no group session", "reason", err, "pause", pause)
		if retry.Sleep(ctx, pause) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// open opens a session. If the lease of the previous session is left, open revokes it: otherwise
// the new keys would wait for the old keys to expire.
func (g *Group) open(ctx context.Context) (*joint, error) {
	clients, session, err := g.cfg.open(ctx)
	if err != nil {
		return nil, err
	}
	j := &joint{Session: session, clients: clients}
	over := false
	defer func() {
		if !over {
			session.Abandon() // the user's codec panicked: nothing else ends the session
		}
	}()
	j.value, err = g.cfg.value(g.instance, session.TTL())
	over = true
	if err != nil {
		g.end(j)
		return nil, err
	}
	if g.left != 0 {
		once, cancel := context.WithTimeout(ctx, g.cfg.Leave)
		defer cancel()
		_, _ = clients.Lease.Revoke(once, g.left) // if it fails, the lease expires
		g.left = 0
	}
	return j, nil
}

// end closes a session. It blocks for at most Config.Leave, plus the time for which a user's
// ShouldYield or Ordering ignores its context; after that the lease is left to expire.
func (g *Group) end(j *joint) {
	g.log.line(slog.LevelInfo, "group session ends", "lease", hex(j.Session), "reason", j.Err())
	late, cancel := context.WithTimeout(context.Background(), g.cfg.Leave)
	defer cancel()
	err := j.Close(late)
	if err == nil {
		return
	}
	j.Abandon()
	if !g.cfg.Session.Shared {
		g.left = j.ID()
	}
	g.log.line(slog.LevelWarn, "lease left to expire", "lease", hex(j.Session), "reason", err)
}

func hex(s *lease.Session) string { return fmt.Sprintf("%x", s.ID()) }
