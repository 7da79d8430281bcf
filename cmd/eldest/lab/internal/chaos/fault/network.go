package fault

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// What is done to the network between a participant and the members. Each is proven by
// the counts of the proxies in between.
func init() {
	strikers[plan.ClientCut] = network("connections to it were reset and refused", func(f *Field, m *crew.Member, _ plan.Strike) {
		m.Host.Refuse()
		m.Host.Reset()
	}, func(before, now etcdtest.Stats) bool {
		return now.Reset > before.Reset && now.Refused > before.Refused
	})
	strikers[plan.ClientOneWay] = network("something was lost", func(f *Field, m *crew.Member, s plan.Strike) {
		m.Host.Drop(direction(s.Way))
	}, dropped)
	strikers[plan.BlackHole] = network("something was swallowed", func(f *Field, m *crew.Member, s plan.Strike) {
		if s.All {
			m.Host.Cut()
			return
		}
		m.Host.Proxy(busiest(f, m)).Drop(etcdtest.BothWays)
	}, dropped)
	strikers[plan.Stall] = network("something was held", func(f *Field, m *crew.Member, s plan.Strike) {
		m.Host.Hold(direction(s.Way))
	}, func(before, now etcdtest.Stats) bool { return sum(now.Held) > sum(before.Held) })
	strikers[plan.Delay] = network("something was delayed", func(f *Field, m *crew.Member, s plan.Strike) {
		m.Host.Delay(s.Inbound, s.Outbound)
	}, func(before, now etcdtest.Stats) bool { return sum(now.Delayed) > sum(before.Delayed) })
	strikers[plan.LostReply] = participant(said, lostReply)
}

// network makes a striker of what is done to a host, and of what its counts must say.
func network(what string, do func(*Field, *crew.Member, plan.Strike), seen func(before, now etcdtest.Stats) bool) striker {
	return participant(said, func(ctx context.Context, f *Field, m *crew.Member, s plan.Strike) (func(context.Context) error, error) {
		before := m.Host.Stats()
		do(f, m, s)
		heal := func(context.Context) error { m.Host.Mend(); return nil }
		return heal, inject.Eventually(ctx, "that "+what+" of "+m.Who(), func() (bool, error) {
			return seen(before, m.Host.Stats()), nil
		})
	})
}

// said is the note of a strike that says all there is to say.
const said = "%[1]s: %[2]s"

func dropped(before, now etcdtest.Stats) bool { return sum(now.Dropped) > sum(before.Dropped) }

func sum(p etcdtest.Pieces) int64 { return p.Inbound + p.Outbound }

func direction(w plan.Way) etcdtest.Direction {
	switch w {
	case plan.In:
		return etcdtest.Inbound
	case plan.Out:
		return etcdtest.Outbound
	default:
		return etcdtest.BothWays
	}
}

// busiest is the member with which a participant has exchanged most: a client spreads its
// requests, and its watches and renewals stay where they are.
func busiest(f *Field, m *crew.Member) int {
	best, most := 0, int64(-1)
	for i := range f.Size() {
		if n := sum(m.Host.Proxy(i).Stats().Passed); n > most {
			best, most = i, n
		}
	}
	return best
}

// lostReply is proven by the reply that the proxy took: the request was carried out.
func lostReply(ctx context.Context, _ *Field, m *crew.Member, s plan.Strike) (func(context.Context) error, error) {
	var match func([]byte) bool
	switch s.Reply {
	case plan.WriteReply:
		// A write carries the writer's name in its value; a read does not.
		match = etcdtest.Containing(" " + m.Who() + "-")
	case plan.Registration:
		// A registration carries the candidate's value, which is its name.
		match = registrationOf(m.Who())
	}
	lost := m.Host.SwallowNextReply(match)
	if s.Reply == plan.Registration {
		if err := resign(ctx, m); err != nil {
			return nil, err
		}
	}
	if err := lost.Wait(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", inject.ErrNoEffect, err)
	}
	return nil, nil
}

// registrationOf tells the request that puts a candidate's key from the writes of leaders,
// which carry the name, too, but followed by a number.
func registrationOf(who string) func([]byte) bool {
	name, write := etcdtest.Containing(who), etcdtest.Containing(" "+who+"-")
	return func(message []byte) bool { return name(message) && !write(message) }
}
