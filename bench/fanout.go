package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

func init() {
	scenario(Scenario{
		Name:    "fanout",
		Summary: "the leader changes: until the last of many observers knows",
		Defaults: Options{
			Rounds: 15, Warmup: 1, Sizes: []int{100, 1000},
			Contenders: []string{"eldest", "concurrency", "herd"},
		},
		without: map[string]string{"floor": "it observes nothing"},
		Regimes: []Term{
			{Name: "one-process", Text: "all observers live in this process"},
			{Name: "slow-mixed", Text: "as one-process, and one observer in ten takes a second over each reading; those are not waited for"},
			{Name: "processes", Text: "the observers are spread over four processes, or as many as --processes says"},
		},
		Metrics: []Term{
			{Name: "last", Text: "from the call that resigns to the last observer's knowing the new leader", Better: Lower},
			{Name: "spread", Text: "from the first observer's knowing to the last's", Better: Lower},
			{Name: "requests", Text: "requests that all observers made for it, renewals left out", Better: Lower},
			{Name: "watches", Text: "watches that they opened for it", Better: Lower},
			{Name: "streams", Text: "streams that they opened for it", Better: Lower},
			{Name: "events", Text: "watch events that they were told", Better: Lower},
		},
		measure: fanout,
	})
}

// fanoutProcesses is over how many workers the observers are spread, unless the options
// say so.
const fanoutProcesses = 4

// showTTL is so long that no lease runs out between two turns of a contender.
const showTTL = 5 * time.Minute

// fanout has a leader resign while its successor waits, and measures
//
//	last    from the call of Resign to the last observer's knowing the new leader
//	spread  from the first observer's knowing to the last's
//
// and what the observers' hosts sent and were told from that call until they were silent
// again: requests (renewals left out), watches among them, streams, events.
//
// The observers live in this process, or are spread over others, or one in ten of them
// is slow; slow observers are not waited for. A crowd is gathered once, in its
// contender's first turn, and sees one change a turn, with nobody doing anything else:
// to gather the largest takes longer than all the changes together.
//
// A change may take a minute and a hundredth of a second for each observer. More is an
// error, and the next turn gathers a new crowd.
func fanout(ctx context.Context, r *run) error {
	processes := r.options.Processes
	if processes == 0 && r.site.Spawn != nil {
		processes = fanoutProcesses
	}
	processes = min(processes, slices.Max(r.options.Sizes)) // none is without an observer
	r.report.Setup.Processes = processes
	type regime struct {
		name            string
		processes, slow int // slow in a hundred
	}
	regimes := []regime{{"one-process", 0, 0}, {"slow-mixed", 0, 10}}
	if processes > 0 {
		regimes = append(regimes, regime{"processes", processes, 0})
	}
	var points []point
	for _, regime := range regimes {
		for _, n := range r.options.Sizes {
			points = append(points, point{
				regime: regime.name, n: n, rounds: r.options.Rounds,
				timeout: turnTimeout + time.Duration(n)*10*time.Millisecond,
			})
		}
	}
	r.plan(points)
	for i, p := range points {
		regime := regimes[i/len(r.options.Sizes)]
		size := CrowdSize{Observers: p.n, Slow: p.n * regime.slow / 100}
		if err := r.shows(ctx, p, regime.processes, size); err != nil {
			return err
		}
	}
	return nil
}

// shows has the contenders take turns in changing the leader before a crowd.
func (r *run) shows(ctx context.Context, p point, processes int, size CrowdSize) error {
	open := map[string]*show{} // by contender
	defer func() {
		for _, s := range open {
			s.close(r.last)
		}
	}()
	return r.interleave(ctx, p, func(ctx context.Context, t *turn) error {
		s := open[t.contender]
		if s == nil {
			var err error
			if s, err = t.openShow(ctx, processes, size); err != nil {
				return fmt.Errorf("gathering observers: %w", err)
			}
			open[t.contender] = s
		}
		err := t.change(ctx, s)
		if err != nil {
			delete(open, t.contender)
			s.close(r.last)
		}
		return err
	})
}

// change has the leader resign and the next one win.
func (t *turn) change(ctx context.Context, s *show) error {
	next, err := s.candidate(ctx)
	if err != nil {
		return err
	}
	won := campaign(ctx, next)
	if err := s.queue.queue(ctx, 2); err != nil {
		return err
	}
	before, err := quiet(ctx, s.stalls)
	if err != nil {
		return err
	}
	runtime.GC() // what others left behind is not this contender's to sweep up
	begun := time.Now()
	if err := s.leader.Resign(ctx); err != nil {
		return err
	}
	o := <-won // or the end of ctx
	if o.err != nil {
		return o.err
	}
	s.leader = next
	seen, err := s.await(ctx)
	if err != nil {
		return err
	}
	after, err := quiet(ctx, s.stalls)
	if err != nil {
		return err
	}
	t.took("last", seen.Last.Sub(begun))
	t.took("spread", seen.Last.Sub(seen.First))
	cost := after.Minus(before)
	t.sample("requests", Counts, cost.Requests()-cost.Leases)
	t.sample("watches", Counts, cost.Watches)
	t.sample("streams", Counts, cost.Streams)
	t.sample("events", Counts, cost.Events)

	last := s.sessions[0]
	s.sessions = s.sessions[1:]
	if err := last.Close(ctx); err != nil {
		return err
	}
	return s.queue.queue(ctx, 1)
}
