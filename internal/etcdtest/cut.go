package etcdtest

import (
	"context"
	"errors"
	"fmt"
)

// Direction is a direction as an etcd member sees it, for cuts between members and
// for the proxies between a client and its member.
type Direction uint8

const (
	// Inbound is towards the member: requests, and what other members send it.
	Inbound Direction = 1 << iota
	// Outbound is away from the member: replies, watch events, and what it
	// sends to other members.
	Outbound
	// BothWays is all of it.
	BothWays = Inbound | Outbound
)

// Cut separates member i from all others, both ways, until Mend. Its clients still
// reach it. What was on its way is held and arrives after Mend, if the connection
// lasts as long. It returns when nothing gets through any more, so it blocks for
// about a millisecond per member. Held proves that something was held.
func (c *Cluster) Cut(i int) error { return c.setCut(i, BothWays) }

// CutOneWay holds only what other members send to member i (Inbound) or what it
// sends to them (Outbound). Requests that members make of each other (renewing a
// lease that the leader keeps) need both ways and fail in either case.
func (c *Cluster) CutOneWay(i int, d Direction) error { return c.setCut(i, d) }

// Mend joins member i to all others; those that are cut themselves stay cut.
func (c *Cluster) Mend(i int) error { return c.setCut(i, 0) }

// Held counts what was held back on the links of member i since its processes
// started: requests between members and pieces of their streams. A member that
// does not run does not count.
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
		return fmt.Errorf("%w: nothing stands between the members, by Config.Direct", ErrState)
	}
	c.mu.Lock()
	c.cut[i] = d
	c.mu.Unlock()
	return c.applyCuts()
}

// applyCuts makes all running members agree with c.cut. A member that is stopped or
// dead learns it when it is back.
func (c *Cluster) applyCuts() error { return c.tellAll(func(reply) {}) }

// tellAll sends every running member the whole set of cut links and hands each
// answer to f.
func (c *Cluster) tellAll(f func(reply)) error {
	// One at a time, so that a member never ends up with an older set.
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
			// A member that was killed or stopped meanwhile cannot answer
			// and need not.
			if m.running() == p && m.Running() {
				errs = append(errs, err)
			}
			continue
		}
		f(r)
	}
	return errors.Join(errs...)
}

// cutLinks lists the links that are cut: those out of a member whose Outbound is
// cut and those into one whose Inbound is.
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
