package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

var suspensions = Scenario{
	Name:    "suspensions",
	Summary: "the effects of a loaded machine on healthy leaders: suspensions by heartbeats, and moves, in a minute",
	Defaults: Options{
		Rounds: 2, For: 15 * time.Second, Load: 300, TTLs: []time.Duration{10 * time.Second},
		Contenders: []string{contender.Heartbeat500ms, contender.Heartbeat1s, contender.Eldest, contender.Concurrency},
	},
	Regimes: []Term{
		{Name: "writes", Text: "the cluster is written to (--load)"},
		{Name: "hogs", Text: "for each CPU of this machine there is a process that computes without pause"},
		{Name: "leader-killed", Text: "the member that is etcd's leader is killed (SIGKILL) after a third of the turn, and started again after two thirds"},
		{Name: "all", Text: "all three at once"},
	},
	Metrics: []Term{
		{Name: "suspensions", Text: "leaders that were suspended because no heartbeat was acknowledged in time: of four leaders, in one minute", Better: Lower},
		{Name: "resumptions", Text: "suspended leaders that led on with the same token"},
		{Name: "moves", Text: "leaders that another tenure followed, although nothing had happened to them", Better: Lower},
		{Name: "without", Text: "time without a leader: the mean of four elections, in one minute", Better: Lower},
	},
	measure: measureSuspensions,
}

// watchedElections is how many elections a turn has, each with a leader and a successor.
const watchedElections = 4

func measureSuspensions(r *run) {
	ttl := r.granted(r.options.TTLs[0])
	var points []point
	for _, regime := range []string{"writes", "hogs", "leader-killed", "all"} {
		points = append(points, point{
			regime: regime, rounds: r.options.Rounds, cold: true, timeout: turnTimeout + r.options.For + 2*ttl,
			loaded: regime == "writes" || regime == "all",
		})
	}
	r.measure(points, func(t *turn) {
		var elections []*watchedElection
		leaders, successors := t.local(), t.local()
		for range watchedElections {
			elections = append(elections, t.watchElection(leaders, successors, ttl))
		}
		t.sleep(time.Second) // not quiet: heartbeats never pause
		all := t.point.regime == "all"
		if all || t.point.regime == "hogs" {
			for range runtime.NumCPU() {
				h := must(newHost(t.site, true))
				t.after(func(context.Context) { _ = h.kill() })
				go h.spin(t.ctx)
			}
		}
		before, begun := sum(elections), time.Now()
		t.sleep(t.options.For / 3)
		restart := func(context.Context) error { return nil }
		if all || t.point.regime == "leader-killed" {
			if t.site.KillLeader == nil {
				check(fmt.Errorf("no member can be killed here: %w", errors.ErrUnsupported))
			}
			_, again, err := t.site.KillLeader(t.ctx)
			check(err)
			restart = again
			t.after(func(ctx context.Context) { _ = restart(ctx) }) // does nothing if it was started again
		}
		t.sleep(t.options.For / 3)
		check(restart(t.ctx))
		t.sleep(t.options.For - time.Since(begun))
		now, minutes := sum(elections), time.Since(begun).Minutes()
		perMinute := func(n int) int64 { return int64(float64(n)/minutes + 0.5) }
		t.counted("suspensions", perMinute(now.suspended-before.suspended))
		t.counted("resumptions", perMinute(now.resumed-before.resumed))
		t.counted("moves", perMinute(now.won-before.won))
		t.took("without", time.Duration(float64(now.without-before.without)/minutes/watchedElections))
	})
}

// watchedElection has two candidates, which campaign repeatedly.
type watchedElection struct {
	name string
	mu   sync.Mutex
	tally
	// leads reports whether there is a leader, since is when that began.
	leads bool
	since time.Time
}

// tally counts the events of leaders.
type tally struct {
	won, suspended, resumed int
	without                 time.Duration
}

// watchElection makes an election with a leader on one place and a successor, which is queued, on
// the other.
func (t *turn) watchElection(leaders, successors *local, ttl time.Duration) *watchedElection {
	e := &watchedElection{name: t.election(), since: time.Now()}
	live, cancel := context.WithCancel(t.cleanup)
	var running sync.WaitGroup
	t.after(func(context.Context) {
		cancel()
		running.Wait()
	})
	queue := t.monitor(e.name)
	defer queue.stop()
	of := must(contender.Named(t.contender))
	for i, on := range []*local{leaders, successors} {
		s := must(of.Open(t.ctx, on.client, ttl))
		running.Go(func() { e.takePart(live, of, on, s, ttl) })
		queue.await(i + 1)
	}
	return e
}

// takePart campaigns until ctx ends; it opens another session when one is lost.
func (e *watchedElection) takePart(ctx context.Context, of contender.Contender, on *local, s contender.Session, ttl time.Duration) {
	for ctx.Err() == nil {
		if s == nil {
			s, _ = of.Open(ctx, on.client, ttl)
		}
		for s != nil && s.Usable() && ctx.Err() == nil {
			if c, err := s.Candidate(e.name, ""); err == nil {
				e.campaign(ctx, c)
			}
		}
		if s != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
			_ = s.Close(last) // on an error its lease expires
			cancel()
		}
		s = nil
		_ = retry.Sleep(ctx, quietTime)
	}
}

// campaign campaigns and leads until the tenure has ended; it resumes a suspended tenure.
func (e *watchedElection) campaign(ctx context.Context, c contender.Candidate) {
	first, err := c.Campaign(ctx)
	if err != nil {
		return
	}
	won := true
	for t := range contender.Tenures(ctx, c, first) {
		e.note(func() {
			if won {
				e.won++
			} else {
				e.resumed++
			}
			e.without += time.Since(e.since)
			e.leads, e.since, won = true, time.Now(), false
		})
		_ = retry.Wait(ctx, t.Context().Done())
		e.note(func() {
			if errors.Is(context.Cause(t.Context()), eldest.ErrSuspended) {
				e.suspended++
			}
			e.leads, e.since = false, time.Now()
		})
	}
}

func (e *watchedElection) note(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// sum adds up the events of all elections so far.
func sum(elections []*watchedElection) (all tally) {
	for _, e := range elections {
		e.note(func() {
			all.won, all.suspended, all.resumed = all.won+e.won, all.suspended+e.suspended, all.resumed+e.resumed
			all.without += e.without
			if !e.leads {
				all.without += time.Since(e.since)
			}
		})
	}
	return all
}
