package curator

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// heed turns what the elector says into routes until ctx ends. That this node leads is
// not for it to say: the tenure does when it has been set up.
func (c *Curator) heed(ctx context.Context) {
	for watch := c.elector.Watch(); ; {
		if _, err := watch.Next(ctx); err != nil {
			return
		}
		s := c.elector.Status() // there may be a newer one already
		leader, err := whom(s, c.elector.Instance())
		if err != nil {
			c.front.router.neither(err)
		} else {
			c.front.router.follow(leader)
		}
	}
}

// whom returns whom to forward to in a status, or why nobody: never to oneself, and
// never to nowhere.
func whom(s elector.Status, instance string) (elector.Leader, error) {
	leader, follows := s.Leader()
	switch {
	case s.Role() == elector.Leading:
		return leader, fmt.Errorf("%w: the tenure of this node begins or ends", eldest.ErrNoLeader)
	case !follows && s.Reason() != nil:
		return leader, s.Reason()
	case !follows:
		return leader, eldest.ErrNoLeader
	case leader.Instance == instance:
		return leader, fmt.Errorf("%w: the leader is this node", eldest.ErrNoLeader)
	case leader.Address == "":
		return leader, fmt.Errorf("%w: leader %q does not say where it can be reached", eldest.ErrNoLeader, leader.NodeID)
	}
	return leader, nil
}

// narrate logs where calls go until ctx ends; of changes that follow each other quickly
// the last. It has a goroutine of its own: the logger is not ours and may be slow.
func (c *Curator) narrate(ctx context.Context) {
	log := c.cfg.Logger.With("election", c.cfg.Elector.Election, "node", c.cfg.Elector.NodeID)
	for reader := c.front.router.Reader(); ; {
		to, err := reader.Next(ctx)
		if err != nil {
			return
		}
		switch {
		case to.tenure != nil:
			log.Info("calls are served here", "token", int64(to.tenure.token))
		case to.peer != nil:
			log.Info("calls are forwarded", "leader", to.peer.leader.NodeID, "address", to.peer.leader.Address, "token", int64(to.peer.leader.Token))
		default:
			log.Info("calls wait for a leader", "reason", to.reason)
		}
	}
}
