package bench

import (
	"context"
	"fmt"
	"time"
)

func init() {
	scenario(Scenario{
		Name:     "drain",
		Summary:  "hand-overs one after another through a queue of N: what one costs as N grows",
		Defaults: Options{Rounds: 5, Sizes: []int{10, 100}},
		least:    2,
		Regimes: []Term{
			{Name: "queue", Text: "N candidates wait; whoever leads resigns at once; 200 hand-overs or 20 s of each queue at most"},
		},
		Metrics: []Term{
			{Name: "handover", Text: "from the call that resigns to the return of the next one's campaign", Better: Lower},
		},
		measure: drain,
	})
}

// drainLimit is how many hand-overs are measured of one queue. In a queue of 4,000 that
// leaves the length at which each is measured nearly the same, and bounds the turn of a
// contender whose every hand-over costs something for each candidate that waits.
const drainLimit = 200

// drainBudget bounds the time of a turn's hand-overs: where everybody asks the server to
// sort the whole queue at each, one takes half a second at 1,000.
const drainBudget = 20 * time.Second

// drain queues N candidates; each leader resigns as soon as it leads. The samples of
// "handover" are single hand-overs, N-1 in a turn but at most drainLimit. A turn that
// has used up drainBudget stops there, and the report has a note of it. Long queues have fewer rounds (see fewer).
func drain(ctx context.Context, r *run) error {
	return r.onHosts(ctx, r.crowds("queue", r.options.Rounds, 2*turnTimeout, 60*time.Millisecond), (*turn).drain)
}

func (t *turn) drain(ctx context.Context, hosts []Host) error {
	l, err := t.lineUpQueued(ctx, hosts)
	if err != nil {
		return err
	}
	leader, err := l.next(ctx)
	if err != nil {
		return err
	}
	first, planned := time.Now(), min(t.point.n-1, drainLimit)
	for i := range planned {
		begun := time.Now()
		if err := leader.Resign(ctx); err != nil {
			return fmt.Errorf("resignation %d: %w", i+1, err)
		}
		if leader, err = l.next(ctx); err != nil {
			return fmt.Errorf("the win after resignation %d: %w", i+1, err)
		}
		t.took("handover", leader.outcome.at.Sub(begun))
		if time.Since(first) > drainBudget && i+1 < planned {
			t.note("a turn took more than %v and ended before its %d hand-overs were over", drainBudget, planned)
			return nil
		}
	}
	return nil
}

// lineUpQueued makes a line-up of the point's size, has all of it campaign, and blocks
// until all are queued and have settled.
func (t *turn) lineUpQueued(ctx context.Context, hosts []Host) (*lineup, error) {
	election := t.election()
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return nil, err
	}
	l, _, err := t.enqueue(ctx, hosts, election, queue, t.point.n)
	if err != nil {
		return nil, err
	}
	queue.cancel() // what is measured now is the candidates' own
	// A key in the queue is not all: each has a predecessor to find and to watch.
	return l, settle(ctx, hosts)
}
