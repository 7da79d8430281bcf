package loop

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

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
	case errors.Is(err, eldest.ErrNotElected), errors.Is(err, eldest.ErrForeignKey), errors.Is(err, eldest.ErrDeposed), errors.Is(err, eldest.ErrInvalid),
		rpcerr.Is(err, rpctypes.ErrLeaseNotFound), rpcerr.Refused(err):
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
	case core.Look:
		if a.Token == 0 {
			return c.find(ctx)
		}
		known := txn.Place{Token: a.Token, Complete: at.Complete}
		for _, e := range at.Elders {
			known.Ahead = append(known.Ahead, eldest.Candidate{Key: e.Key, Token: e.Token})
		}
		p, err := queue.Ahead(ctx, kv, entry, known, a.At)
		if a.At > 0 && txn.Repeatable(err) {
			p, err = queue.Ahead(ctx, kv, entry, known, 0)
		}
		if errors.Is(err, eldest.ErrDeposed) {
			return c.find(ctx) // in which life it is, if in any, and at which revision
		}
		return core.Event{Kind: core.Looked, Token: p.Token, Position: position(p)}, err
	case core.Delete:
		resp, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.key), "=", int64(a.Token))).Then(clientv3.OpDelete(c.key)).Commit()
		if err != nil {
			return core.Event{}, err
		}
		return core.Event{Kind: core.Deleted, Revision: resp.Header.Revision}, nil
	default:
		panic("no request: " + a.Request.String())
	}
}

// find reads the candidate's key, whatever its life.
func (c *Candidate) find(ctx context.Context) (core.Event, error) {
	resp, err := c.cfg.KV.Get(ctx, c.key)
	if err != nil {
		return core.Event{}, err
	}
	e := core.Event{Kind: core.Looked, Position: core.Position{Revision: resp.Header.Revision}}
	for _, kv := range resp.Kvs {
		if kv.Lease == c.cfg.Entry.Lease {
			e.Token = eldest.Token(kv.CreateRevision)
		}
	}
	return e, nil
}

func position(p txn.Place) core.Position {
	at := core.Position{Revision: p.Revision, Complete: p.Complete}
	for _, e := range p.Ahead {
		at.Elders = append(at.Elders, core.Elder{Key: e.Key, Token: e.Token})
	}
	return at
}
