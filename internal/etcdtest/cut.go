package etcdtest

import (
	"context"
	"errors"
	"fmt"
)

// Direction is a direction as an etcd member sees it, for partitions between members and for the
// proxies between a client and a member.
type Direction uint8

const (
	// Inbound is towards the member: requests, and messages of other members.
	Inbound Direction = 1 << iota
	// Outbound is away from the member: replies, watch events, and its messages to other members.
	Outbound
	// BothWays is both directions.
	BothWays = Inbound | Outbound
)

// Cut partitions member i from all others, in both directions, until Mend. Its clients still reach
// it. Messages on their way are held and arrive after Mend, if the connection lasts as long. Cut
// returns when no message gets through any more, so it blocks for about a millisecond per member.
// Held proves that something was held.
func (c *Cluster) Cut(i int) error { return c.setCut(i, BothWays) }

// CutOneWay holds only the messages that other members send to member i (Inbound) or that it sends
// to them (Outbound). Requests between members (such as the renewal of a lease, which is forwarded
// to the leader) need both directions and fail in either case.
func (c *Cluster) CutOneWay(i int, d Direction) error { return c.setCut(i, d) }

// Mend connects member i to all others again, except to those that are still cut themselves.
func (c *Cluster) Mend(i int) error { return c.setCut(i, 0) }

// Held counts what was held back on the links of member i since its processes started: requests
// between members and parts of their streams. A member that does not run is not counted.
func (c *Cluster) Held(i int) (int64, error) {
	name := c.members[i].Name
	var n int64
	err := c.tellAll(func(r reply) {
		for _, h := range r.Held {
			if h.From == name || h.To == name {
				n += h.Count
			}
		}
	})
	return n, err
}

func (c *Cluster) setCut(i int, d Direction) error {
	if c.cfg.Direct {
		return fmt.Errorf("%w: Config.Direct is set, so members cannot be partitioned", ErrState)
	}
	c.mu.Lock()
	c.cut[i] = d
	c.mu.Unlock()
	return c.applyCuts()
}

// applyCuts sends c.cut to all running members. A member that is stopped receives it when it runs again,
// and one that is dead has it in its configuration when it is restarted.
func (c *Cluster) applyCuts() error { return c.tellAll(func(reply) {}) }

// tellAll sends every running member the whole set of cut links and calls f with each reply.
func (c *Cluster) tellAll(f func(reply)) error {
	// One call at a time, so that a member never ends up with an older set.
	c.tell.Lock()
	defer c.tell.Unlock()
	cut := c.cutLinks()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var errs []error
	for _, m := range c.members {
		p := m.running()
		if p == nil || !m.Running() {
			continue
		}
		r, err := p.request(ctx, cut)
		if err != nil {
			// A member that was killed or stopped meanwhile cannot answer and need not.
			if m.running() == p && m.Running() {
				errs = append(errs, err)
			}
			continue
		}
		f(r)
	}
	return errors.Join(errs...)
}

// cutLinks lists the links that are cut: those that leave a member whose Outbound is cut and those
// that enter a member whose Inbound is cut.
func (c *Cluster) cutLinks() []link {
	c.mu.Lock()
	defer c.mu.Unlock()
	links := []link{}
	for i, from := range c.members {
		for j, to := range c.members {
			if i != j && (c.cut[i]&Outbound != 0 || c.cut[j]&Inbound != 0) {
				links = append(links, link{From: from.Name, To: to.Name})
			}
		}
	}
	return links
}
