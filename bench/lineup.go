package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// lineupTTL is so long that no lease is renewed, let alone runs out, between the
// queueing of a line-up and its end: what is counted is the election's.
const lineupTTL = 5 * time.Minute

// lineupHosts is over how many clients a line-up is spread, where it is not spread over
// processes: a few, as thousands of candidates of one program would be.
const lineupHosts = 4

// abreastLimit is how many requests of a set-up are under way at a time. Above about
// 5,000 etcd refuses them; far below that it is as busy as it can be.
const abreastLimit = 64

// lineup is a number of candidates of one election, each with a session, that is a
// lease, of its own. They are made before anything is measured.
//
// Invariant: each entrant whose campaign was started is delivered on returned, once.
type lineup struct {
	entrants []*entrant
	returned chan *entrant
	// failed counts the campaigns that returned an error before close, the first of
	// which is in failure; nudge is filled whenever one does.
	failed  atomic.Int64
	failure atomic.Pointer[error]
	nudge   chan struct{}

	live   context.Context // ends the campaigns
	cancel context.CancelFunc
	going  sync.WaitGroup
}

// entrant is one of them. outcome is valid once it was delivered.
type entrant struct {
	Candidate
	session Session
	outcome outcome
	// give ends its campaign.
	give context.CancelFunc
	gone bool
}

// hostsFor makes the hosts of line-ups, which end with the run.
func (r *run) hostsFor(ctx context.Context) ([]Host, error) {
	if r.options.Processes == 0 {
		return r.hostsOf(ctx, lineupHosts)
	}
	return r.hostsOf(ctx, r.options.Processes)
}

// hostsOf makes n hosts, which end with the run.
func (r *run) hostsOf(ctx context.Context, n int) ([]Host, error) {
	var hosts []Host
	for range n {
		h, err := r.host(ctx)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// lineUp opens n sessions and makes their candidates, in turn on each host. It leaves
// with the turn: first the campaigns are ended, so that the departures wake nobody,
// then the sessions are closed.
func (t *turn) lineUp(ctx context.Context, hosts []Host, election string, n int) (*lineup, error) {
	l := &lineup{entrants: make([]*entrant, n), returned: make(chan *entrant, n), nudge: make(chan struct{}, 1)}
	l.live, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.after(func(context.Context) { l.close(t.last) })
	err := abreast(ctx, n, func(ctx context.Context, i int) error {
		s, err := hosts[i%len(hosts)].Open(ctx, t.contender, lineupTTL)
		if err != nil {
			return fmt.Errorf("opening a session: %w", err)
		}
		l.entrants[i] = &entrant{session: s}
		l.entrants[i].Candidate, err = s.Candidate(election, "")
		return err
	})
	return l, err
}

// campaign starts the campaigns of some entrants, all at once.
func (l *lineup) campaign(entrants ...*entrant) {
	for _, e := range entrants {
		var ctx context.Context
		ctx, e.give = context.WithCancel(l.live)
		l.going.Go(func() {
			defer e.give()
			e.outcome.at, e.outcome.err = e.Campaign(ctx)
			if e.outcome.err != nil && ctx.Err() == nil {
				l.failure.CompareAndSwap(nil, &e.outcome.err)
				l.failed.Add(1)
				select {
				case l.nudge <- struct{}{}:
				default:
				}
			}
			l.returned <- e
		})
	}
}

// enqueue makes a line-up of n, has all of it campaign, and blocks until the referee sees so many
// more keys. It returns how long that took from the first campaign on.
func (t *turn) enqueue(ctx context.Context, hosts []Host, election string, queue *referee, n int) (l *lineup, took time.Duration, err error) {
	if l, err = t.lineUp(ctx, hosts, election, n); err != nil {
		return nil, 0, err
	}
	begun, before := time.Now(), len(queue.keys)
	l.campaign(l.entrants...)
	err = l.queued(ctx, queue, before+n)
	return l, time.Since(begun), err
}

// queued blocks until the referee sees n keys, but for those of candidates that failed.
func (l *lineup) queued(ctx context.Context, f *referee, n int) error {
	for len(f.keys) < n-int(l.failed.Load()) {
		var err error
		select {
		case resp, ok := <-f.events:
			err = f.note(resp, ok)
		case <-l.nudge:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("waiting for %d candidates to stand (%d do): %w", n, len(f.keys), err)
		}
	}
	return nil
}

// next blocks until a campaign returns, and returns the candidate that now leads. A
// campaign that failed is an error.
func (l *lineup) next(ctx context.Context) (*entrant, error) {
	select {
	case e := <-l.returned:
		return e, e.outcome.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leave has a candidate that waits leave for good, as a process would that is being
// shut down: it ends its campaign and closes its session.
func (l *lineup) leave(ctx context.Context, e *entrant) error {
	e.give()
	switch other, err := l.next(ctx); {
	case other == nil:
		return err
	case other != e:
		return fmt.Errorf("another campaign came to its end, too: %w", err)
	case err == nil:
		return errors.New("the candidate that was to leave while it waited leads")
	}
	e.gone = true
	return e.session.Close(ctx)
}

// firstFailure is the first error of a campaign, nil if none failed.
func (l *lineup) firstFailure() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// close ends the line-up. What it takes grows with the number of its candidates, so it
// has a bound of its own, within that of the run.
func (l *lineup) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell+time.Duration(len(l.entrants))*10*time.Millisecond)
	defer cancel()
	l.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.going.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // a campaign that does not heed its context
	}
	_ = abreast(ctx, len(l.entrants), func(ctx context.Context, i int) error {
		if e := l.entrants[i]; e != nil && !e.gone {
			_ = e.session.Close(ctx) // at the latest its lease runs out
		}
		return nil
	})
}

// abreast calls f for 0 to n-1, some at a time, until one fails or ctx ends, and
// returns the first error.
func abreast(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, abreastLimit) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// fewer is how many rounds a point with n candidates has where the scenario has the
// given number: proportionally fewer above 600 candidates, because long line-ups take
// long to make, but one at least. Rounds that somebody has asked for are all made.
func (r *run) fewer(rounds, n int) int {
	if r.exact {
		return rounds
	}
	return min(rounds, max(1, rounds*600/n))
}
