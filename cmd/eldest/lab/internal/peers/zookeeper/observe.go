package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Observe watches the first node of the queue. No node can be created before it, so that is enough; a watch on all
// nodes would also be triggered by each new candidate. It returns when ctx ends, or the client is closed, with the reason.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var leader string
	for {
		first, changed, err := c.first(ctx)
		if err != nil {
			return fmt.Errorf("zookeeper: observe: %w", err)
		}
		if first != "" {
			var id string
			id, changed, err = c.watch(ctx, first)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return fmt.Errorf("zookeeper: observe: %w", err)
			}
			if first != leader {
				leader = first
				leads(id)
			}
		}
		select {
		case <-changed: // or the session has expired: the next list tells
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// first returns the name of the first node of the queue, or "" and a channel that receives an event when there are
// nodes.
func (c *client) first(ctx context.Context) (string, <-chan zk.Event, error) {
	names, err := c.candidates(ctx)
	if err != nil {
		return "", nil, err
	}
	if len(names) > 0 {
		return names[0], nil, nil
	}
	type list struct {
		names  []string
		events <-chan zk.Event
	}
	l, err := retry(ctx, c, func() (list, error) {
		names, _, events, err := c.conn.ChildrenW(c.queue)
		return list{names, events}, err
	})
	if err != nil || len(l.names) == 0 {
		return "", l.events, err
	}
	bySequence(l.names)
	return l.names[0], nil, nil
}
