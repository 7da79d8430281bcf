package bench

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

func init() {
	scenario(Scenario{
		Name:     "join",
		Summary:  "from nothing to leadership, on a live session too; and N candidates at once: until the last is queued",
		Defaults: Options{Rounds: 100, Warmup: 5, Sizes: []int{100, 1000}},
		Regimes: []Term{
			{Name: "cold", Text: "one candidate without a session, nobody ahead of it"},
			{Name: "live", Text: "one candidate on a session that it has already"},
			{Name: "crowd", Text: "N candidates at once, each with a session of its own already; a twentieth of the rounds"},
		},
		Metrics: []Term{
			{Name: "win", Text: "from the first call to leadership", Better: Lower},
			{Name: "requests", Text: "requests from the first call until 50 ms after the win", Better: Lower},
			{Name: "queued", Text: "until the last of the N keys stands", Better: Lower},
			{Name: "errors", Text: "campaigns that returned an error to their caller", Better: Lower},
		},
		measure: join,
	})
}

// settling is how long after a win the candidate's requests are counted: what it sends
// in the background, the watch of its own key, say, belongs to what standing costs.
const settling = 50 * time.Millisecond

// join measures one candidate that nobody is ahead of, without a session (regime
// "cold") and with one ("live"), and crowds. Crowds have a twentieth of the rounds, and
// large ones still fewer (see fewer).
func join(ctx context.Context, r *run) error {
	points := []point{{regime: "cold", n: 1, rounds: r.options.Rounds}, {regime: "live", n: 1, rounds: r.options.Rounds}}
	points = append(points, r.crowds("crowd", (r.options.Rounds+19)/20, turnTimeout, 30*time.Millisecond)...)
	return r.onHosts(ctx, points, func(t *turn, ctx context.Context, hosts []Host) error {
		switch t.point.regime {
		case "cold":
			return t.startCold(ctx, hosts[:1])
		case "live":
			return t.startLive(ctx, hosts[0])
		}
		return t.crowdIn(ctx, hosts)
	})
}

// startCold measures from a client without a session to leadership.
func (t *turn) startCold(ctx context.Context, on []Host) error {
	election := t.election()
	before, err := wires(ctx, on)
	if err != nil {
		return err
	}
	begun := time.Now()
	c, err := t.candidate(ctx, on[0], election, handoverTTL)
	if err != nil {
		return err
	}
	won, err := lead(ctx, c)
	if err != nil {
		return err
	}
	t.took("win", won.Sub(begun))
	if err := retry.Sleep(ctx, settling); err != nil {
		return err
	}
	after, err := wires(ctx, on)
	if err != nil {
		return err
	}
	t.sample("requests", Counts, after.Minus(before).Requests())
	return nil
}

// startLive measures the campaign alone.
func (t *turn) startLive(ctx context.Context, on Host) error {
	c, err := t.candidate(ctx, on, t.election(), handoverTTL)
	if err != nil {
		return err
	}
	begun := time.Now()
	won, err := lead(ctx, c)
	if err != nil {
		return err
	}
	t.took("win", won.Sub(begun))
	return nil
}

// crowdIn has all candidates of a line-up campaign at once. Campaigns that return an
// error are counted, and not waited for.
func (t *turn) crowdIn(ctx context.Context, hosts []Host) error {
	election := t.election()
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return err
	}
	l, took, err := t.enqueue(ctx, hosts, election, queue, t.point.n)
	if err != nil {
		return err
	}
	t.took("queued", took)
	t.sample("errors", Counts, l.failed.Load())
	t.remark(l.firstFailure())
	return nil
}
