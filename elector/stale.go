package elector

import (
	"context"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/observe"
)

// evict removes the keys that this node left in the queue and that would be waited for
// until their leases expire: those of earlier lives before the first round, and those
// of earlier rounds after one that could not say good-bye. Each is removed in the life
// that was seen, so a key that came back meanwhile is left alone.
func (r *round) evict(ctx context.Context) error {
	e := r.e
	if !e.earlier && !e.ghosts {
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
		switch {
		case err != nil, id.NodeID != e.cfg.NodeID, entry.Lease == int64(r.session.ID()):
			continue // somebody else's, or of this very round
		case id.Instance != e.instance && !e.earlier:
			continue // a later life: it evicted us, and not the other way round
		}
		if err := election.Evict(ctx, r.clients.KV, e.cfg.Election, entry.Candidate); err != nil {
			return err
		}
		e.log(func() {
			e.cfg.Logger.Warn("stale key removed", "election", e.cfg.Election, "node", e.cfg.NodeID,
				"key", entry.Key, "token", int64(entry.Token), "instance", id.Instance)
		})
	}
	e.earlier, e.ghosts = false, false
	return nil
}
