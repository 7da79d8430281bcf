package devcluster

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/types"
)

// ErrNoMember is returned by the faults for a member that there is not, or that
// is not in the state that the fault needs.
var ErrNoMember = errors.New("no such member")

// Cut separates member i from all others, both ways, until Mend. Its clients
// still reach it. It does not block.
func (c *Cluster) Cut(i int) error { return c.link(i, true) }

// Mend joins member i to all others that are not cut themselves.
func (c *Cluster) Mend(i int) error { return c.link(i, false) }

// Stop ends member i and waits for it, for up to about a second; its data stays.
func (c *Cluster) Stop(i int) error {
	m, err := c.take(i)
	if err != nil {
		return err
	}
	m.Stop()
	return nil
}

// Restart brings a stopped member back with its data and blocks until it serves
// requests, which takes a majority, or until ctx ends; after an error of ctx the
// member is running but not ready.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	c.mu.Lock()
	if c.closed || i < 0 || i >= len(c.cfgs) || c.members[i] != nil {
		c.mu.Unlock()
		return fmt.Errorf("restart member %d: %w that is stopped", i, ErrNoMember)
	}
	err := c.start(i)
	m := c.members[i]
	if err == nil {
		c.apply()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return m.Ready(ctx)
}

// take removes member i from the running ones and hands it to the caller.
func (c *Cluster) take(i int) (*Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.members) || c.members[i] == nil {
		return nil, fmt.Errorf("member %d: %w that runs", i, ErrNoMember)
	}
	m := c.members[i]
	c.members[i] = nil
	return m, nil
}

func (c *Cluster) link(i int, cut bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || i < 0 || i >= len(c.cut) {
		return fmt.Errorf("member %d: %w", i, ErrNoMember)
	}
	c.cut[i] = cut
	c.apply()
	return nil
}

// apply makes the servers agree with c.cut. A server drops what it sends to a
// peer that it has cut and what it reads from that peer's stream, but not what
// the peer posts to it, hence every pair is cut on both sides. It is applied as a
// whole each time, so that a member that restarts finds its cuts again.
func (c *Cluster) apply() {
	for i, m := range c.members {
		if m == nil {
			continue
		}
		for j, id := range c.ids {
			switch {
			case i == j:
			case c.cut[i] || c.cut[j]:
				m.Server().CutPeer(types.ID(id))
			default:
				m.Server().MendPeer(types.ID(id))
			}
		}
	}
}
