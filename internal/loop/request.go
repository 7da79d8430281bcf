package loop

import (
	"context"
	"errors"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

// request sends one request and returns its outcome.
func (c *Candidate) request(ctx context.Context, a core.Ask, at core.Position) core.Event {
	e, err := c.carryOut(ctx, a, at)
	switch {
	case err == nil:
		return e
	case errors.Is(err, eldest.ErrNotElected), errors.Is(err, eldest.ErrForeignKey), rpcerr.Refused(err):
		return core.Event{Kind: core.Refused, Err: err}
	}
	return core.Event{Kind: core.Unanswered, Err: err}
}

func (c *Candidate) carryOut(ctx context.Context, a core.Ask, at core.Position) (core.Event, error) {
	kv, queue, entry := c.cfg.KV, c.cfg.Queue, c.cfg.Entry
	switch a.Request {
	case core.Register, core.RegisterAlone:
		enter := queue.Enter
		if a.Request == core.RegisterAlone {
			enter = queue.EnterAlone
		}
		p, err := enter(ctx, kv, entry)
		return core.Event{Kind: core.Registered, Token: p.Token, Position: position(p)}, err
	case core.Look, core.Survey:
		known := txn.Place{Token: a.Token, Complete: at.Complete}
		for _, e := range at.Elders {
			known.Ahead = append(known.Ahead, eldest.Candidate{Key: e.Key, Token: e.Token})
		}
		p, err := queue.Ahead(ctx, kv, entry, known, a.At)
		if a.At > 0 && txn.Repeatable(err) {
			p, err = queue.Ahead(ctx, kv, entry, known, 0)
		}
		if errors.Is(err, eldest.ErrDeposed) {
			return core.Event{Kind: core.Looked}, nil
		}
		return core.Event{Kind: core.Looked, Token: p.Token, Position: position(p)}, err
	case core.Delete:
		return core.Event{Kind: core.Deleted}, txn.Leave(ctx, kv, c.key, a.Token)
	default:
		panic("no request: " + a.Request.String())
	}
}

func position(p txn.Place) core.Position {
	at := core.Position{Revision: p.Revision, Complete: p.Complete}
	for _, e := range p.Ahead {
		at.Elders = append(at.Elders, core.Elder{Key: e.Key, Token: e.Token})
	}
	return at
}
