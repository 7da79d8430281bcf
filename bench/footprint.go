package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

func init() {
	scenario(Scenario{
		Name:     "footprint",
		Summary:  "memory and goroutines of a waiting candidate, an observer and an election; what many elections on one session send",
		Defaults: Options{Rounds: 3, Sizes: []int{1000}, TTLs: []time.Duration{6 * time.Second}},
		Regimes: []Term{
			{Name: "candidate", Text: "N candidates wait, each with a session of its own"},
			{Name: "shared", Text: "N candidates wait, each in an election of its own, all on one session; a goroutine of each is the caller's"},
			{Name: "observer", Text: "N observers of one election"},
			{Name: "election", Text: "N elections are led on one session"},
		},
		Metrics: []Term{
			{Name: "heap", Text: "live heap for each of the N, after a garbage collection", Better: Lower},
			{Name: "stack", Text: "stacks for each of the N", Better: Lower},
			{Name: "goroutines", Text: "goroutines for each of the N, rounded", Better: Lower},
			{Name: "memory in all", Text: "heap and stacks of all N", Better: Lower},
			{Name: "goroutines in all", Text: "goroutines of all N", Better: Lower},
			{Name: "requests", Text: "requests of all kinds in one TTL, for all N elections", Better: Lower},
			{Name: "renewals", Text: "renewals of the one lease in one TTL, for all N elections; neither few nor many is better"},
			{Name: "reads", Text: "reads in one TTL, for all N elections", Better: Lower},
			{Name: "streams", Text: "watch streams opened, for all N elections", Better: Lower},
		},
		measure: footprint,
	})
}

// footprint measures what N of a kind cost this process, divided by N: "heap" is what
// is live after a garbage collection, "stack" what the stacks take, both in bytes;
// "goroutines" are rounded to whole ones. It is measured in this process, wherever
// else candidates may live, each turn on a client of its own, whose connection and
// streams are there before the first count.
//
//   - "candidate": each with a session of its own, all waiting;
//   - "shared": all on one session, each waiting in an election of its own. The goroutine
//     that waits for the win is the user's, and the same for all;
//   - "observer": each has seen who leads, and waits for news. Nobody reads: the
//     goroutine that does is the user's, and the same for all;
//   - "election": each on the same session, and led.
//
// In "election" it also counts, in a whole TTL of the session (the first of the options),
// "requests", among them "renewals" of the one lease and "reads", and in all the watch "streams" that were
// opened.
func footprint(ctx context.Context, r *run) error {
	ttl, err := r.granted(ctx, r.options.TTLs[0])
	if err != nil {
		return err
	}
	kinds := []struct {
		regime  string
		measure func(ctx context.Context, t *turn, on *local) error
	}{
		{"candidate", func(ctx context.Context, t *turn, on *local) error { return t.candidatesWeigh(ctx, on) }},
		{"shared", func(ctx context.Context, t *turn, on *local) error { return t.sharersWeigh(ctx, on) }},
		{"observer", func(ctx context.Context, t *turn, on *local) error { return t.observersWeigh(ctx, on) }},
		{"election", func(ctx context.Context, t *turn, on *local) error { return t.electionsWeigh(ctx, on, ttl) }},
	}
	var points []point
	for _, kind := range kinds {
		for _, n := range r.options.Sizes {
			points = append(points, point{
				regime: kind.regime, n: n, rounds: r.options.Rounds, cold: true,
				timeout: turnTimeout + time.Duration(n)*30*time.Millisecond,
			})
		}
	}
	r.plan(points)
	for i, p := range points {
		measure := kinds[i/len(r.options.Sizes)].measure
		err := r.interleave(ctx, p, func(ctx context.Context, t *turn) error {
			on, err := newLocal(r.site)
			if err != nil {
				return err
			}
			t.after(func(context.Context) { _ = on.Close() })
			return measure(ctx, t, on)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// candidatesWeigh puts N candidates behind a leader.
func (t *turn) candidatesWeigh(ctx context.Context, on *local) error {
	election := t.election()
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return err
	}
	// The leader and the first who waits bring the client's streams with them.
	if _, _, err := t.enqueue(ctx, []Host{on}, election, queue, 2); err != nil {
		return err
	}
	empty, err := weigh(ctx, on)
	if err != nil {
		return err
	}
	l, _, err := t.enqueue(ctx, []Host{on}, election, queue, t.point.n)
	if err != nil {
		return err
	}
	if err := l.firstFailure(); err != nil {
		return err
	}
	return t.weighed(ctx, on, empty)
}

// sharersWeigh has N candidates of one session wait, each in an election of its own.
func (t *turn) sharersWeigh(ctx context.Context, on *local) error {
	leaders, err := newLocal(t.site)
	if err != nil {
		return err
	}
	t.after(func(context.Context) { _ = leaders.Close() })
	leader, err := t.open(ctx, leaders, lineupTTL)
	if err != nil {
		return err
	}
	session, err := t.open(ctx, on, lineupTTL)
	if err != nil {
		return err
	}
	elections := make([]string, t.point.n+1)
	for i := range elections {
		elections[i] = t.election()
	}
	candidates := make([]Candidate, len(elections)) // of the leaders, so that they are not collected
	err = abreast(ctx, len(elections), func(ctx context.Context, i int) (err error) {
		if candidates[i], err = leader.Candidate(elections[i], ""); err == nil {
			_, err = lead(ctx, candidates[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	live, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var waiting sync.WaitGroup
	t.after(func(context.Context) { cancel(nil); waiting.Wait() })
	err = t.weighEach(ctx, on, func(_ context.Context, i int) error {
		c, err := session.Candidate(elections[i], "")
		if err != nil {
			return err
		}
		waiting.Go(func() {
			if _, err := c.Campaign(live); live.Err() == nil {
				cancel(fmt.Errorf("a campaign behind a leader has ended: %w", cmp.Or(err, errors.New("it has won"))))
			}
		})
		return nil
	})
	runtime.KeepAlive(candidates)
	return cmp.Or(err, context.Cause(live))
}

// observersWeigh has N observers look at one election.
func (t *turn) observersWeigh(ctx context.Context, on *local) error {
	of, err := contender.Named(t.contender)
	if err != nil {
		return err
	}
	election := t.election()
	sight, err := of.Sight(ctx, on.client, election)
	if err != nil {
		return err
	}
	t.after(sight.Close)
	leader, err := t.candidate(ctx, on, election, lineupTTL)
	if err != nil {
		return err
	}
	if _, err := lead(ctx, leader); err != nil {
		return err
	}
	feeds := make([]contender.Feed, t.point.n+1)
	observe := func(ctx context.Context, i int) error {
		var err error
		if feeds[i], err = sight.Feed(ctx); err != nil {
			return err
		}
		_, err = feeds[i].Next(ctx)
		return err
	}
	err = t.weighEach(ctx, on, observe)
	runtime.KeepAlive(feeds)
	return err
}

// weighEach begins N of a kind, and one more before, which brings what all share.
func (t *turn) weighEach(ctx context.Context, on *local, begin func(ctx context.Context, i int) error) error {
	if err := begin(ctx, t.point.n); err != nil {
		return err
	}
	empty, err := weigh(ctx, on)
	if err != nil {
		return err
	}
	if err := abreast(ctx, t.point.n, begin); err != nil {
		return err
	}
	return t.weighed(ctx, on, empty)
}

// electionsWeigh leads N elections with one session.
func (t *turn) electionsWeigh(ctx context.Context, on *local, ttl time.Duration) error {
	alone := []Host{on}
	start, err := wires(ctx, alone)
	if err != nil {
		return err
	}
	s, err := t.open(ctx, on, ttl)
	if err != nil {
		return err
	}
	candidates := make([]Candidate, t.point.n+1)
	elections := make([]string, len(candidates))
	for i := range elections {
		elections[i] = t.election()
	}
	win := func(ctx context.Context, i int) error {
		var err error
		if candidates[i], err = s.Candidate(elections[i], ""); err != nil {
			return err
		}
		_, err = lead(ctx, candidates[i])
		return err
	}
	if err := t.weighEach(ctx, on, win); err != nil {
		return err
	}
	last, err := wires(ctx, alone)
	if err != nil {
		return err
	}
	t.sample("streams", Counts, last.Minus(start).Streams)
	if err := retry.Sleep(ctx, ttl); err != nil {
		return err
	}
	now, err := wires(ctx, alone)
	if err != nil {
		return err
	}
	t.sample("requests", Counts, now.Minus(last).Requests())
	t.sample("renewals", Counts, now.Minus(last).Renewals)
	t.sample("reads", Counts, now.Minus(last).Reads)
	runtime.KeepAlive(candidates)
	return nil
}
