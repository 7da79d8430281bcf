package chaos

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What is done to the network between a participant and the members. Each is proven by
// the counts of the proxies in between.

func clientCut(ctx context.Context, _ *series, c *candidate, _ Injection) (healer, error) {
	return c.network(ctx, "connections to it were reset and refused", func() {
		c.host.Refuse()
		c.host.Reset()
	}, func(before, now etcdtest.Stats) bool { return now.Reset > before.Reset && now.Refused > before.Refused })
}

func clientOneWay(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return c.network(ctx, "something was lost", func() { c.host.Drop(in.Way.direction()) }, dropped)
}

func blackHole(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	return c.network(ctx, "something was swallowed", func() {
		if in.All {
			c.host.Cut()
			return
		}
		c.host.Proxy(c.busiest(s.Size())).Drop(etcdtest.BothWays)
	}, dropped)
}

func stall(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return c.network(ctx, "something was held", func() { c.host.Hold(in.Way.direction()) },
		func(before, now etcdtest.Stats) bool { return sum(now.Held) > sum(before.Held) })
}

func delay(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return c.network(ctx, "something was delayed", func() { c.host.Delay(in.Inbound, in.Outbound) },
		func(before, now etcdtest.Stats) bool { return sum(now.Delayed) > sum(before.Delayed) })
}

func dropped(before, now etcdtest.Stats) bool { return sum(now.Dropped) > sum(before.Dropped) }

func sum(p etcdtest.Pieces) int64 { return p.Inbound + p.Outbound }

// network does something to a host, and blocks until its counts say so.
func (c *candidate) network(ctx context.Context, what string, do func(), seen func(before, now etcdtest.Stats) bool) (healer, error) {
	before := c.host.Stats()
	do()
	heal := func(context.Context) error { c.host.Mend(); return nil }
	return heal, inject.Until(ctx, "that "+what+" of "+c.who, func(context.Context) (bool, error) { return seen(before, c.host.Stats()), nil })
}

// busiest is the member with which a participant has exchanged most: a client spreads its
// requests, and its watches and renewals stay where they are.
func (c *candidate) busiest(size int) int {
	best, most := 0, int64(-1)
	for i := range size {
		if n := sum(c.host.Proxy(i).Stats().Passed); n > most {
			best, most = i, n
		}
	}
	return best
}

// lostReply is proven by the reply that the proxy took: the request was carried out.
func lostReply(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	var match func([]byte) bool
	switch in.Reply {
	case WriteReply:
		// A write carries the writer's name in its value; a read does not.
		match = etcdtest.Containing(" " + c.who + "-")
	case Registration:
		match = registrationOf(c.who)
	}
	lost := c.host.SwallowNextReply(match)
	if in.Reply == Registration {
		if err := c.order(participant.Order{Do: participant.DoResign}); err != nil {
			return nil, err
		}
	}
	if err := lost.Wait(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", inject.ErrNoEffect, err)
	}
	return nil, nil
}

// registrationOf tells the request that puts a candidate's key, whose value is its name, from the
// writes of leaders, which carry the name, too, but followed by a number.
func registrationOf(who string) func([]byte) bool {
	name, write := etcdtest.Containing(who), etcdtest.Containing(" "+who+"-")
	return func(message []byte) bool { return name(message) && !write(message) }
}
