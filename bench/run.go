package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// turnTimeout bounds one turn, unless the scenario's point says otherwise.
const turnTimeout = time.Minute

// farewell bounds what a turn tidies up after it is over, parting everything that is
// tidied up once the run was broken off.
const (
	farewell = 10 * time.Second
	parting  = 5 * time.Second
)

// Run measures one scenario and blocks until that is done, or ctx ends; then the report
// holds what was measured until then, beside the error. Errors that wrap ErrInvalid
// come before anything is sent. Turns that fail are part of the report, not errors; a
// cluster that does not answer any more is one, and so are a worker that has ended and
// rounds in a row in which nobody succeeded. What is tidied up after the end of ctx takes
// five seconds at most.
func Run(ctx context.Context, site Site, name string, o Options) (*Report, error) {
	s, err := Named(name)
	if err != nil {
		return nil, err
	}
	exact := o.Rounds > 0
	if o, err = s.complete(site, o); err != nil {
		return nil, err
	}
	r, err := newRun(ctx, site, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.report.Scenario, r.exact = s.Name, exact
	if err := r.answers(ctx); err != nil {
		return nil, err
	}
	err = s.measure(ctx, r)
	return r.conclude(), err
}

// newRun makes a run, which must be closed. It ends with ctx, but for its farewells.
func newRun(ctx context.Context, site Site, o Options) (*run, error) {
	judge, err := site.dial()
	if err != nil {
		return nil, err
	}
	r := &run{
		site: site, options: o, judge: judge,
		name: fmt.Sprintf("eldest-bench-%08x", rand.Uint32()),
		report: &Report{
			Time: time.Now(), Go: runtime.Version(), Etcd: site.Version, Members: site.Members,
			Setup: Setup{
				OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Storage: site.Storage,
				Warmup: o.Warmup,
			},
		},
	}
	var give context.CancelFunc
	r.last, give = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(parting, give) })
	r.over = func() {
		stop()
		give()
	}
	return r, nil
}

// run is one run of one scenario.
type run struct {
	site    Site
	options Options
	report  *Report
	// name is what all of its elections and keys begin with.
	name string
	// exact says that the rounds are not to be reduced: somebody has asked for them.
	exact bool
	// judge is the referee's client.
	judge *clientv3.Client
	// last is for tidying up: it outlives the run's context, but not for long.
	last context.Context
	over func() // ends last

	done, total int
	barren      int // rounds in a row that nobody succeeded in
	elections   int
	mu          sync.Mutex
	hosts       []Host
	failed      map[place]*failures
	places      []place // the keys of failed, in order
}

func (r *run) close() {
	var all sync.WaitGroup
	for _, h := range r.hosts {
		all.Go(func() {
			// A worker that takes too long is not waited for.
			defer context.AfterFunc(r.last, func() { _ = h.Kill() })()
			_ = h.Close() // what was measured is safe
		})
	}
	all.Wait()
	_ = r.judge.Close()
	r.over()
}

// host returns a new host, which ends with the run: in this process, or a worker if
// the run is spread over processes.
func (r *run) host(ctx context.Context) (Host, error) {
	if r.options.Processes > 0 {
		return r.worker(ctx)
	}
	h, err := newLocal(r.site)
	if err != nil {
		return nil, err
	}
	r.adopt(h)
	return h, nil
}

// adopt has the run close a host at its end.
func (r *run) adopt(h Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts = append(r.hosts, h)
	if _, ok := h.(*remote); ok {
		r.report.Setup.Processes++
	}
}

// shift has each host's client meet another member next, at random. The client asks the
// members in turn, and turns that send the same requests again and again would always
// meet the same: one contender the leader, another a follower.
func (r *run) shift(ctx context.Context) {
	members := len(r.site.Client.Endpoints)
	if members < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shiftPatience)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range r.hosts {
		all.Go(func() {
			_ = h.Shift(ctx, rand.IntN(members)) // a host that is in trouble says so in the turn
		})
	}
	all.Wait()
}

// shiftPatience bounds shift.
const shiftPatience = 2 * time.Second

// point is one place of a scenario at which all contenders are measured.
type point struct {
	regime  string
	n       int
	rounds  int
	timeout time.Duration // of a turn; 0 means turnTimeout
	// cold says that no turns are thrown away: where each is long, or the first is
	// like the others.
	cold bool
}

// warmup is how many turns of each contender are thrown away at a point.
func (r *run) warmup(p point) int {
	if p.cold {
		return 0
	}
	return r.options.Warmup
}

// plan announces how many rounds are to come, for the progress.
func (r *run) plan(points []point) {
	for _, p := range points {
		r.total += (p.rounds + r.warmup(p)) * len(r.options.Contenders)
	}
}

// crowds are the points of a regime, one for each size. Large ones have fewer rounds (see
// fewer), and for each of their candidates more time.
func (r *run) crowds(regime string, rounds int, timeout, each time.Duration) (points []point) {
	for _, n := range r.options.Sizes {
		points = append(points, point{
			regime: regime, n: n, rounds: r.fewer(rounds, n), cold: true, timeout: timeout + time.Duration(n)*each,
		})
	}
	return points
}

// onHosts has the contenders take turns at one point after another, with the same hosts.
func (r *run) onHosts(ctx context.Context, points []point, measure func(t *turn, ctx context.Context, hosts []Host) error) error {
	r.plan(points)
	hosts, err := r.hostsFor(ctx)
	if err != nil {
		return err
	}
	for _, p := range points {
		if err := r.interleave(ctx, p, func(ctx context.Context, t *turn) error { return measure(t, ctx, hosts) }); err != nil {
			return err
		}
	}
	return nil
}

// interleave has the contenders take turns at a point, round by round. Turns that fail
// are counted; it returns ctx's cause, or why no other turn can succeed. A contender for
// which the point makes no sense is left out.
func (r *run) interleave(ctx context.Context, p point, measure func(ctx context.Context, t *turn) error) error {
	if p.timeout == 0 {
		p.timeout = turnTimeout
	}
	out := map[string]bool{}
	for i := -r.warmup(p); i < p.rounds; i++ {
		succeeded, failed, why := 0, 0, error(nil)
		for _, name := range r.options.Contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if r.options.Progress != nil {
				r.options.Progress(Progress{Contender: name, Regime: p.regime, N: p.n, Done: r.done, Total: r.total})
			}
			r.done++
			if out[name] {
				continue
			}
			t := &turn{run: r, point: p, contender: name, warm: i < 0, share: 1}
			r.shift(ctx)
			err := t.take(ctx, measure)
			switch {
			case errors.Is(err, errors.ErrUnsupported):
				out[name] = true
			case err != nil && ctx.Err() != nil:
				return context.Cause(ctx) // it was broken off
			case err != nil:
				failed, why = failed+1, err
				t.fail(err, t.share)
				if err := r.sound(ctx); err != nil {
					return err
				}
			default:
				succeeded++
			}
		}
		if err := r.round(succeeded, failed, why); err != nil {
			return err
		}
	}
	return nil
}
