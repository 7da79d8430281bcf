package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// turnTimeout bounds one turn, unless its point says otherwise, and cleanupTimeout what
	// is cleaned up after it.
	turnTimeout    = time.Minute
	cleanupTimeout = 10 * time.Second
	// abortTimeout bounds all that is cleaned up after the run's context has ended.
	abortTimeout = 5 * time.Second
	// answerTimeout bounds the wait for an answer of the cluster.
	answerTimeout = 10 * time.Second
	// rotateTimeout bounds rotate.
	rotateTimeout = 2 * time.Second
	// maxFailedRounds is how many rounds in a row may fail for all contenders.
	maxFailedRounds = 2
)

var errAllFailed = errors.New("all turns failed, round after round")

// Run measures one scenario and blocks until that is done, or ctx ends; then the report
// has what was measured until then, beside the error. Errors that wrap ErrInvalid
// are returned before anything is sent. Turns that fail are part of the report and no errors;
// the run ends with an error when the cluster does not answer any more, when a worker has
// ended, and after rounds in a row in which all turns failed. The clean-up after the end
// of ctx takes five seconds at most.
func Run(ctx context.Context, site Site, name string, o Options) (*Report, error) {
	s, err := Named(name)
	if err != nil {
		return nil, err
	}
	exact := o.Rounds > 0
	if o, err = s.complete(o); err != nil {
		return nil, err
	}
	if o.Processes > 0 && site.Worker == nil {
		return nil, fmt.Errorf("%w: no processes can be started here", ErrInvalid)
	}
	r, err := newRun(ctx, site, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.report.Scenario, r.report.Summary, r.exact = s.Name, s.Summary, exact
	if err := r.healthy(); err != nil {
		return nil, err
	}
	if err = try(func() { s.measure(r) }); err != nil {
		r.report.Incomplete = err.Error()
	}
	return r.conclude(), err
}

// run is one run of one scenario.
type run struct {
	ctx     context.Context
	site    Site
	options Options
	report  *Report
	// name is the beginning of all of its elections and keys.
	name string
	// exact says that the user has named the number of rounds.
	exact bool
	// observer is the client of the monitors.
	observer *clientv3.Client
	// cleanup outlives the run's context by abortTimeout.
	cleanup context.Context
	end     context.CancelFunc // ends cleanup

	done, total  int
	failedRounds int // rounds in a row in which all turns failed
	elections    int
	hosts        []host
}

// newRun makes a run, which must be closed.
func newRun(ctx context.Context, site Site, o Options) (*run, error) {
	observer, err := site.dial()
	if err != nil {
		return nil, err
	}
	r := &run{
		ctx: ctx, site: site, options: o, observer: observer,
		name: fmt.Sprintf("eldest-bench-%08x", rand.Uint32()),
		report: &Report{
			Time: time.Now(), Go: runtime.Version(), Etcd: site.Version, Members: site.Members,
			Setup: Setup{
				OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Storage: site.Storage,
				Warmup: o.Warmup,
			},
		},
	}
	cleanup, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(abortTimeout, cancel) })
	r.cleanup, r.end = cleanup, func() {
		stop()
		cancel()
	}
	return r, nil
}

func (r *run) close() {
	var all sync.WaitGroup
	for _, h := range r.hosts {
		all.Go(func() {
			defer context.AfterFunc(r.cleanup, func() { _ = h.kill() })() // a worker that takes too long
			_ = h.close()
		})
	}
	all.Wait()
	_ = r.observer.Close()
	r.end()
}

// host returns a new host, which ends with the run: in this process, or a worker if
// the run is spread over processes.
func (r *run) host() host {
	h := must(newHost(r.site, r.options.Processes > 0))
	r.hosts = append(r.hosts, h)
	if h.isWorker() {
		r.report.Setup.Processes++
	}
	return h
}

// hostsOf makes n hosts, or as many as there are to be processes.
func (r *run) hostsOf(n int) (hosts []host) {
	if r.options.Processes > 0 {
		n = max(r.options.Processes, min(n, 2))
	}
	for range n {
		hosts = append(hosts, r.host())
	}
	return hosts
}

// rotate makes each host's client ask another member next, at random. Clients ask the
// members in turn, and turns that send the same number of requests would always
// meet the same member: one contender etcd's leader, another one a follower.
func (r *run) rotate() {
	members := len(r.site.Client.Endpoints)
	if members < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, rotateTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range r.hosts {
		all.Go(func() { _ = h.rotate(ctx, rand.IntN(members)) }) // what is wrong with a host fails the turn
	}
	all.Wait()
}

// healthy returns why no turn can succeed: a worker has ended, or etcd does not answer a read that needs
// a quorum.
func (r *run) healthy() error {
	for _, h := range r.hosts {
		if err := h.ended(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, answerTimeout)
	defer cancel()
	if _, err := r.observer.Get(ctx, r.name, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("etcd at %v does not answer: %w", r.site.Client.Endpoints, err)
	}
	return nil
}

// point is one combination of regime and size, at which all contenders are measured.
type point struct {
	regime  string
	n       int
	rounds  int
	timeout time.Duration // of a turn; 0 means turnTimeout
	// warmup is how many turns before are thrown away: none if it is cold, where each is long, or
	// the first is like the others.
	warmup int
	cold   bool
	// among, if not nil, says which contenders take part.
	among func(contender string) bool
	// loaded says that the cluster is written to meanwhile.
	loaded bool
}

// sized are the points of a regime, one for each size. A turn's timeout grows by each for each of
// the n.
func (r *run) sized(regime string, rounds int, timeout, each time.Duration) (points []point) {
	for _, n := range r.options.Sizes {
		points = append(points, point{regime: regime, n: n, rounds: r.fewer(rounds, n), cold: true, timeout: timeout + time.Duration(n)*each})
	}
	return points
}

// fewer is how many rounds a point has with n candidates: above 600 proportionally fewer, because long
// queues take long to make, but one at least, and all that the user has asked for.
func (r *run) fewer(rounds, n int) int {
	if r.exact {
		return rounds
	}
	return min(rounds, max(1, rounds*600/n))
}

// measure has the contenders take turns at one point after the other.
func (r *run) measure(points []point, measure func(t *turn)) {
	points = slices.DeleteFunc(points, func(p point) bool {
		return len(r.options.Regimes) > 0 && !slices.Contains(r.options.Regimes, p.regime)
	})
	for i := range points {
		p := &points[i]
		p.timeout = cmp.Or(p.timeout, turnTimeout)
		if !p.cold {
			p.warmup = r.options.Warmup
		}
		r.total += (p.warmup + p.rounds) * len(r.options.Contenders)
	}
	for _, p := range points {
		stop := func() {}
		if p.loaded {
			stop = r.load(p.regime)
		}
		err := r.interleave(p, measure)
		stop()
		check(err)
	}
}

// interleave has the contenders take turns at a point, round by round. Turns that fail
// are counted; it returns the cause of the run's end, or why no other turn can succeed. A contender
// that cannot do what is measured is left out.
func (r *run) interleave(p point, measure func(t *turn)) error {
	unsupported := map[string]bool{}
	for i := -p.warmup; i < p.rounds; i++ {
		succeeded, failure := false, error(nil)
		for _, name := range r.options.Contenders {
			if r.options.Progress != nil {
				r.options.Progress(Progress{Contender: name, Regime: p.regime, N: p.n, Done: r.done, Total: r.total})
			}
			r.done++
			if unsupported[name] || p.among != nil && !p.among(name) {
				continue
			}
			t := &turn{run: r, point: p, contender: name, round: i, share: 1}
			r.rotate()
			err := t.take(measure)
			switch {
			case r.ctx.Err() != nil:
				return context.Cause(r.ctx)
			case errors.Is(err, errors.ErrUnsupported):
				unsupported[name] = true
				t.note("left out: %v", err)
			case err != nil:
				failure = err
				t.fail(err, t.share)
				if err := r.healthy(); err != nil {
					return err
				}
			default:
				succeeded = true
			}
		}
		switch {
		case succeeded:
			r.failedRounds = 0
		case failure != nil:
			r.failedRounds++
		}
		if r.failedRounds == maxFailedRounds {
			return fmt.Errorf("%w; the last: %w", errAllFailed, failure)
		}
	}
	return nil
}
