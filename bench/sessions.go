package bench

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

func init() {
	scenario(Scenario{
		Name:     "sessions",
		Summary:  "processor time and requests of N sessions on one client, of which nothing is wanted but to live",
		Defaults: Options{Rounds: 3, Sizes: []int{200}, TTLs: []time.Duration{10 * time.Second}},
		Regimes: []Term{
			{Name: "rest", Text: "N sessions on one client are kept alive for two TTLs, without candidates"},
		},
		Metrics: []Term{
			{Name: "cpu", Text: "processor time of the client and all members in one second", Better: Lower},
			{Name: "client-cpu", Text: "that of the client's process alone", Better: Lower},
			{Name: "renewals", Text: "renewals of all sessions in one TTL; neither few nor many is better"},
			{Name: "questions", Text: "questions to a majority in one TTL; neither few nor many is better"},
		},
		measure: sessions,
	})
}

// cpuSeconds is the processor time of a member, among its metrics.
const cpuSeconds = "process_cpu_seconds_total"

// sessions opens N sessions on one client, lets one TTL pass, and counts in the next two what
// keeping them alive takes: processor time of this process ("client-cpu"), and together with that
// of the members, where their metrics can be read, "cpu". What is drawn from the first of the
// options' TTLs is granted by the server.
func sessions(ctx context.Context, r *run) error {
	ttl, err := r.granted(ctx, r.options.TTLs[0])
	if err != nil {
		return err
	}
	var points []point
	for _, n := range r.options.Sizes {
		points = append(points, point{
			regime: "rest", n: n, rounds: r.options.Rounds, cold: true,
			timeout: turnTimeout + 4*ttl + time.Duration(n)*30*time.Millisecond,
		})
	}
	r.plan(points)
	for _, p := range points {
		if err := r.interleave(ctx, p, func(ctx context.Context, t *turn) error { return t.sessionsRest(ctx, ttl) }); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) sessionsRest(ctx context.Context, ttl time.Duration) error {
	on, err := newLocal(t.site)
	if err != nil {
		return err
	}
	t.after(func(context.Context) { _ = on.Close() })
	opened := make([]Session, t.point.n)
	t.after(func(ctx context.Context) {
		_ = abreast(ctx, len(opened), func(ctx context.Context, i int) error {
			if opened[i] != nil {
				_ = opened[i].Close(ctx) // at the latest its lease runs out
			}
			return nil
		})
	})
	err = abreast(ctx, len(opened), func(ctx context.Context, i int) (err error) {
		opened[i], err = on.Open(ctx, t.contender, ttl)
		return err
	})
	if err != nil {
		return err
	}
	if err := retry.Sleep(ctx, ttl); err != nil {
		return err
	}
	const ttls = 2
	before, err := t.spent(ctx, on)
	if err != nil {
		return err
	}
	if err := retry.Sleep(ctx, ttls*ttl); err != nil {
		return err
	}
	after, err := t.spent(ctx, on)
	if err != nil {
		return err
	}
	perSecond := func(d time.Duration) time.Duration { return time.Duration(float64(d) / (ttls * ttl).Seconds()) }
	t.took("client-cpu", perSecond(after.client-before.client))
	if after.known && before.known {
		t.took("cpu", perSecond(after.client-before.client+after.members-before.members))
	}
	wire := after.wire.Minus(before.wire)
	t.sample("renewals", Counts, wire.Renewals/ttls)
	t.sample("questions", Counts, wire.Questions/ttls)
	return nil
}

// spent is what was spent so far. Whether that of the members is known depends on the site.
type spent struct {
	client, members time.Duration
	known           bool
	wire            Wire
}

func (t *turn) spent(ctx context.Context, on *local) (s spent, err error) {
	if s.client, err = processorTime(); err != nil {
		return s, err
	}
	if s.wire, err = on.Wire(ctx); err != nil {
		return s, err
	}
	counted := t.metrics(ctx)
	s.members, s.known = time.Duration(counted[cpuSeconds]*float64(time.Second)), counted != nil
	return s, nil
}
