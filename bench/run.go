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

	"github.com/eldest-io/eldest/bench/echo"
)

const (
	// turnTimeout bounds one turn, unless its point sets another time, and cleanupTimeout the
	// clean-up after it.
	turnTimeout    = time.Minute
	cleanupTimeout = 10 * time.Second
	// abortTimeout bounds all clean-up after the run's context has ended.
	abortTimeout = 5 * time.Second
	// answerTimeout bounds the wait for an answer of the cluster.
	answerTimeout = 10 * time.Second
	// rotateTimeout bounds rotate.
	rotateTimeout = 2 * time.Second
	// maxFailedRounds is how many rounds in a row may fail for all contenders.
	maxFailedRounds = 2
)

var errAllFailed = errors.New("all turns failed, round after round")

// Run measures one scenario and blocks until it is done, or ctx ends; in that case it returns the
// results so far in the report, together with the error. Errors that wrap ErrInvalid are returned
// before any request is sent. Turns that fail are part of the report and cause no error; the run
// ends with an error when the cluster does not answer any more, when a worker has ended, when all
// turns fail in consecutive rounds, and when a call took another way than the one that is measured.
// The clean-up after the end of ctx takes at most five seconds.
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
	// name is the prefix of all its elections and keys.
	name string
	// exact means that the user has set the number of rounds.
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
			defer context.AfterFunc(r.cleanup, func() { _ = h.kill() })() // kill a worker that takes too long
			_ = h.close()
		})
	}
	all.Wait()
	_ = r.observer.Close()
	r.end()
}

// host returns a new host, which ends with the run: in this process, or a worker if the run is
// spread over processes.
func (r *run) host() host {
	h := must(newHost(r.site, r.options.Processes > 0))
	r.hosts = append(r.hosts, h)
	if h.isWorker() {
		r.report.Setup.Processes++
	}
	return h
}

// hostsOf makes n hosts, or one for each process that the options require.
func (r *run) hostsOf(n int) (hosts []host) {
	if r.options.Processes > 0 {
		n = max(r.options.Processes, min(n, 2))
	}
	for range n {
		hosts = append(hosts, r.host())
	}
	return hosts
}

// rotate makes each host's client send its next request to a random member. A client uses the
// members in turn, and turns that send the same number of requests would always meet the same
// member: one contender etcd's leader, another one a follower.
func (r *run) rotate() {
	members := len(r.site.Client.Endpoints)
	if members < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, rotateTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range r.hosts {
		all.Go(func() { _ = h.rotate(ctx, rand.IntN(members)) }) // an error of a host makes the turn fail
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
	// warmup is how many turns before are discarded: none if cold is set, for points whose turns
	// are long or whose first turn is like the others.
	warmup int
	cold   bool
	queue  bool // n is the length of a queue: see fewer
	// among, if not nil, reports whether a contender takes part.
	among func(contender string) bool
	// loaded means that background writes run meanwhile.
	loaded bool
}

// points returns points like p, one for each regime and size. A turn's timeout grows by each for every one of the n.
func (r *run) points(p point, each time.Duration, regimes ...string) (points []point) {
	p.rounds = cmp.Or(p.rounds, r.options.Rounds)
	for _, regime := range regimes {
		for _, n := range r.options.Sizes {
			its := p
			its.regime, its.n, its.timeout = regime, n, p.timeout+time.Duration(n)*each
			if p.queue {
				its.rounds = r.fewer(p.rounds, n)
			}
			points = append(points, its)
		}
	}
	return points
}

// fewer returns how many rounds a point has with n candidates: above 600 proportionally fewer,
// because long queues take long to make, but at least one, and always as many as the user has set.
func (r *run) fewer(rounds, n int) int {
	if r.exact {
		return rounds
	}
	return min(rounds, max(1, rounds*600/n))
}

// measure makes the contenders take turns, at one point after the other.
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

// interleave makes the contenders take turns at a point, round by round. Turns that fail are
// counted. It returns the cause of the run's end, or the reason why no other turn can succeed. A
// contender that does not support the measurement is left out.
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
			case errors.Is(err, echo.ErrOtherWay):
				return err // earlier turns may have measured something else as well
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
