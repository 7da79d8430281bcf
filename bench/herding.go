package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

func init() {
	scenario(Scenario{
		Name:     "herd",
		Summary:  "watch events delivered and requests made, by all clients, when one of N candidates goes",
		Defaults: Options{Rounds: 5, Sizes: []int{10, 100, 1000}},
		Regimes: []Term{
			{Name: "departure", Text: "one candidate goes while N wait"},
		},
		Metrics: []Term{
			{Name: "events", Text: "watch events that all candidates were told when the leader resigned", Better: Lower},
			{Name: "reads", Text: "reads that all candidates made then", Better: Lower},
			{Name: "requests", Text: "all requests that they made then, renewals left out", Better: Lower},
			{Name: "waiter-events", Text: "watch events when a candidate in the middle of the queue left", Better: Lower},
			{Name: "waiter-reads", Text: "reads that all candidates made then; of eldest's there are two", Better: Lower},
			{Name: "waiter-requests", Text: "all requests then, renewals left out", Better: Lower},
			{Name: "server-events", Text: "watch events that the members sent when the leader resigned, whoever they were for", Better: Lower},
			{Name: "server-requests", Text: "requests that the members received then, renewals and other users' included", Better: Lower},
			{Name: "waiter-server-events", Text: "watch events that the members sent when a waiting candidate left", Better: Lower},
			{Name: "waiter-server-requests", Text: "requests that the members received then", Better: Lower},
		},
		measure: herding,
	})
}

// firstRenewals is when etcd's client has certainly sent the first renewal of a lease:
// it looks twice a second for those that are due, and counts a new one among them.
const firstRenewals = 700 * time.Millisecond

// herding counts what two departures cost, each with N candidates that wait then: that
// of the leader ("events", "reads", "requests") and that of a candidate in the middle
// of the queue ("waiter-..."). Counted is what the clients of all candidates, the
// leaver's included, sent and were told from the departure until they are silent again,
// but for renewals of leases. What else a contender asks from time to time counts if it
// happens to fall in between. Whoever leaves stops watching first; where that request is
// overtaken by the deletion, the leaver is told of it as well: one event more. Of
// candidates that never fall silent, only the events are counted.
//
// Where the servers' metrics can be read, "server-requests" and "server-events" are
// what all members counted meanwhile, whoever caused it: renewals, and on a cluster with
// other users what those do, are among them.
func herding(ctx context.Context, r *run) error {
	return r.onHosts(ctx, r.crowds("departure", r.options.Rounds, turnTimeout, 60*time.Millisecond), (*turn).herding)
}

func (t *turn) herding(ctx context.Context, hosts []Host) error {
	election, n := t.election(), t.point.n
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return err
	}
	// The leader, and one more than shall wait in the end.
	l, err := t.lineUp(ctx, hosts, election, n+2)
	if err != nil {
		return err
	}
	// One group after the other, so that it is known who is ahead of whom.
	first, middle := l.entrants[:1], l.entrants[1+n/2:2+n/2]
	elder, younger := l.entrants[1:1+n/2], l.entrants[2+n/2:]
	stand := 0
	for _, group := range [][]*entrant{first, elder, middle, younger} {
		l.campaign(group...)
		stand += len(group)
		if err := l.queued(ctx, queue, stand); err != nil {
			return err
		}
	}
	queue.cancel() // what is counted now is the candidates' own
	if err := retry.Sleep(ctx, firstRenewals); err != nil {
		return err
	}
	leader, err := l.next(ctx)
	if err != nil {
		return err
	}
	before, err := t.tally(ctx, hosts, false)
	if errors.Is(err, errRestless) {
		t.note("requests and reads are not measurable: its clients never fall silent, for so many look now and then whether all is well")
		before, err = t.tally(ctx, hosts, true)
	}
	if err != nil {
		return err
	}
	before, err = t.departure(ctx, hosts, before, "waiter-", func() error { return l.leave(ctx, middle[0]) })
	if err != nil {
		return fmt.Errorf("a waiting candidate leaves: %w", err)
	}
	_, err = t.departure(ctx, hosts, before, "", func() error {
		if err := leader.Resign(ctx); err != nil {
			return err
		}
		_, err := l.next(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("the leader resigns: %w", err)
	}
	return nil
}

// departure counts what leave causes, and returns what was counted in all.
func (t *turn) departure(ctx context.Context, hosts []Host, before tally, whose string, leave func() error) (after tally, err error) {
	if err := leave(); err != nil {
		return tally{}, err
	}
	if after, err = t.tally(ctx, hosts, before.restless); err != nil {
		return tally{}, err
	}
	caused := after.wire.Minus(before.wire)
	t.sample(whose+"events", Counts, caused.Events)
	if !before.restless {
		t.sample(whose+"reads", Counts, caused.Reads)
		t.sample(whose+"requests", Counts, caused.Requests()-caused.Renewals)
	}
	if after.server == nil || before.server == nil {
		return after, nil
	}
	t.sample(whose+"server-events", Counts, int64(after.server[eventsSent]-before.server[eventsSent]))
	if !before.restless {
		t.sample(whose+"server-requests", Counts, int64(after.server[messagesReceived]-before.server[messagesReceived]))
	}
	return after, nil
}

// Of etcd's metrics: the watch events that a member sent, and the messages that its
// gRPC server received, single requests as well as those on streams. The names are
// those of etcd 3.4 to 3.7 with its default metrics.
const (
	eventsSent       = "etcd_debugging_mvcc_events_total"
	messagesReceived = "grpc_server_msg_received_total"
)

// tally is what was counted so far, here and by the servers, whose counts may be nil.
type tally struct {
	wire   Wire
	server map[string]float64
	// restless says that there are requests all the time: only events can be told to
	// be of a departure.
	restless bool
}

// tally waits for a lull and then counts.
func (t *turn) tally(ctx context.Context, hosts []Host, restless bool) (tally, error) {
	wait := quiet
	if restless {
		wait = untold
	}
	w, err := wait(ctx, hosts)
	if err != nil {
		return tally{}, err
	}
	return tally{wire: w, server: t.metrics(ctx), restless: restless}, nil
}

// metrics are the servers', nil if they cannot be read: the clients' counts stand without them.
func (t *turn) metrics(ctx context.Context) map[string]float64 {
	if t.site.Metrics == nil {
		return nil
	}
	counted, err := t.site.Metrics(ctx)
	if err != nil {
		t.note("the servers' metrics could not be read: %v", err)
		return nil
	}
	return counted
}
