package elector

import (
	"context"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/observe"
)

// evict removes keys of this node for which it would wait until their leases expire: after a round
// whose key may be left, those of its earlier rounds; and, before the first round and with
// Config.TakeOver, those of other instances with its NodeID. Each key is removed by its create
// revision, so a key that was created again meanwhile is kept.
func (r *round) evict(ctx context.Context) error {
	e := r.e
	if !e.earlier && !e.leftKeys {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.session.Context(), func() { cancel(r.session.Err()) })()
	queue, err := observe.Queue(ctx, r.clients.KV, nil, e.cfg.Election)
	if err != nil {
		return err
	}
	for _, entry := range queue {
		id, err := e.cfg.Codec.Decode(entry.Value)
		if err != nil || id.NodeID != e.cfg.NodeID || entry.Lease == int64(r.session.ID()) {
			continue // another node's key, or this round's
		}
		// An instance that is found after the first round started later: with TakeOver it evicted
		// this instance, and is not evicted in return.
		if id.Instance != e.instance && (!e.cfg.TakeOver || !e.earlier) {
			e.log.warn("another process, or an earlier instance of this node, has this node ID: its key is not removed",
				"key", entry.Key, "token", int64(entry.Token), "instance", id.Instance)
			continue
		}
		if err := election.Evict(ctx, r.clients.KV, e.cfg.Election, entry.Candidate); err != nil {
			return err
		}
		e.log.warn("stale key removed", "key", entry.Key, "token", int64(entry.Token), "instance", id.Instance)
	}
	e.earlier, e.leftKeys = false, false
	return nil
}
