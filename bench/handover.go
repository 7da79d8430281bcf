package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

func init() {
	scenario(Scenario{
		Name:     "handover",
		Summary:  "a leader resigns: from that call to the successor's win",
		Defaults: Options{Rounds: 200, Warmup: 5, Load: 300},
		Regimes: []Term{
			{Name: "queued", Text: "the leader resigns 15 ms after its successor has queued: the server may not have the successor's watch in place yet"},
			{Name: "settled", Text: "the leader resigns 300 ms after: all watches are in place"},
			{Name: "queued-load", Text: "as queued, while the cluster is written to (--load)"},
			{Name: "settled-load", Text: "as settled, while the cluster is written to (--load)"},
		},
		Metrics: []Term{
			{Name: "win", Text: "from the call that resigns to the return of the successor's campaign", Better: Lower},
			{Name: "resign", Text: "how long that call takes to return", Better: Lower},
		},
		measure: handover,
	})
}

// handoverTTL is longer than a turn: no lease runs out in it.
const handoverTTL = 60 * time.Second

// serverScan is the period at which etcd puts watches in place that start in the past
// (watchResyncPeriod in its package mvcc).
const serverScan = 100 * time.Millisecond

// moments are when the leader resigns: how long after its successor has queued, and
// whether the cluster is written to meanwhile.
var moments = []struct {
	name   string
	after  time.Duration
	loaded bool
}{
	{"queued", 15 * time.Millisecond, false},
	{"settled", 300 * time.Millisecond, false},
	{"queued-load", 15 * time.Millisecond, true},
	{"settled-load", 300 * time.Millisecond, true},
}

// handover measures right after the successor has queued, when a server may not have
// its watch in place yet, and when everything has settled; each in a quiet cluster and
// in one that is written to.
func handover(ctx context.Context, r *run) error {
	r.report.Setup.Load = r.options.Load
	var points []point
	for _, regime := range moments {
		points = append(points, point{regime: regime.name, n: 2, rounds: r.options.Rounds})
	}
	r.plan(points)
	hosts, err := r.hostsOf(ctx, max(r.options.Processes, 2))
	if err != nil {
		return err
	}
	for i, regime := range moments {
		stop := func() {}
		if regime.loaded {
			if stop, err = r.load(ctx, regime.name, r.options.Load); err != nil {
				return err
			}
		}
		err := r.interleave(ctx, points[i], func(ctx context.Context, t *turn) error {
			pair := rand.Perm(len(hosts))
			return t.handOver(ctx, hosts[pair[0]], hosts[pair[1]], regime.after)
		})
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// handOver has one candidate lead, another queue, and the first resign.
func (t *turn) handOver(ctx context.Context, leader, successor Host, after time.Duration) error {
	// A server looks after watches that are not in place yet every 100 ms. Turns must
	// not fall into step with that.
	if err := retry.Sleep(ctx, rand.N(serverScan)); err != nil {
		return err
	}
	election := t.election()
	first, err := t.candidate(ctx, leader, election, handoverTTL)
	if err != nil {
		return err
	}
	second, err := t.candidate(ctx, successor, election, handoverTTL)
	if err != nil {
		return err
	}
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return err
	}
	if _, err := lead(ctx, first); err != nil {
		return err
	}
	won := campaign(ctx, second)
	if err := queue.queue(ctx, 2); err != nil {
		return err
	}
	queue.cancel() // what is measured now is the candidates' own
	if err := retry.Sleep(ctx, after); err != nil {
		return err
	}
	begun := time.Now()
	if err := first.Resign(ctx); err != nil {
		return err
	}
	resigned := time.Now()
	o := <-won
	if o.err != nil {
		return o.err
	}
	t.took("win", o.at.Sub(begun))
	t.took("resign", resigned.Sub(begun))
	return nil
}
