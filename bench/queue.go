package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// queueTTL is so long that no lease is renewed, let alone expires, between the making of a
	// queue and its end: all counted requests belong to the election.
	queueTTL = 5 * time.Minute
	// queueHosts is the number of clients over which a queue is spread, if it is not spread over
	// processes.
	queueHosts = 4
	// maxParallel is how many requests of a set-up are in progress at the same time. Above about
	// 5,000 etcd refuses them; far below that it is already as busy as it can be.
	maxParallel = 64
)

// queue is a number of candidates of one election, each with a session of its own. They are made
// before the measurement begins.
//
// Invariant: each member whose campaign was started is sent on returned, once.
type queue struct {
	turn     *turn
	members  []*member
	monitor  *monitor
	returned chan *member
	// leaders are the members whose campaigns have returned and that next has not taken yet. failed
	// is how many campaigns returned an error, failure is the first of these errors.
	leaders []*member
	failed  int
	failure error

	live    context.Context // of the campaigns
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// member is a candidate of a queue. outcome is valid once it was sent.
type member struct {
	*candidate
	session made
	outcome outcome
	cancel  context.CancelFunc // ends its campaign
}

// newQueue opens n sessions and makes their candidates, in turn on each host.
func (t *turn) newQueue(hosts []host, n int) *queue {
	q := &queue{turn: t, members: make([]*member, n), returned: make(chan *member, n)}
	q.live, q.cancel = context.WithCancel(t.cleanup)
	election := t.election()
	q.monitor = t.monitor(election)
	// Campaigns end before the sessions are closed, so that the departures notify no candidate.
	t.after(func(context.Context) {
		q.cancel()
		q.running.Wait()
	})
	t.parallel(n, func(i int) {
		s := t.open(hosts[i%len(hosts)], queueTTL)
		q.members[i] = &member{session: s, candidate: must(s.candidate(t.ctx, election))}
	})
	return q
}

// campaign starts the campaigns of some members at once, and blocks until they are queued or have
// failed. It returns how long that took.
func (q *queue) campaign(members ...*member) time.Duration {
	begun, want := time.Now(), len(q.monitor.keys)+q.failed+len(members)
	for _, m := range members {
		live, cancel := context.WithCancel(q.live)
		m.cancel = cancel
		q.running.Go(func() {
			defer cancel()
			m.outcome.at, m.outcome.err = m.campaign(live)
			q.returned <- m
		})
	}
	for len(q.monitor.keys)+q.failed < want {
		select {
		case resp, ok := <-q.monitor.events:
			q.monitor.note(resp, ok)
		case m := <-q.returned:
			q.note(m)
		case <-q.turn.ctx.Done():
			check(fmt.Errorf("waiting for %d candidates to be queued (%d are): %w", want-q.failed, len(q.monitor.keys), context.Cause(q.turn.ctx)))
		}
	}
	return time.Since(begun)
}

func (q *queue) note(m *member) {
	if m.outcome.err == nil {
		q.leaders = append(q.leaders, m)
		return
	}
	if q.failed++; q.failure == nil {
		q.failure = m.outcome.err
	}
}

// next blocks until a campaign returns, and returns the candidate that now leads.
func (q *queue) next() *member {
	m := q.nextReturned()
	check(m.outcome.err)
	return m
}

func (q *queue) nextReturned() *member {
	if len(q.leaders) > 0 {
		m := q.leaders[0]
		q.leaders = q.leaders[1:]
		return m
	}
	select {
	case m := <-q.returned:
		return m
	case <-q.turn.ctx.Done():
		panic(failed{context.Cause(q.turn.ctx)})
	}
}

// leave makes a waiting candidate leave for good, as a process does when it shuts down: it ends its
// campaign and closes its session.
func (q *queue) leave(m *member) {
	m.cancel()
	if other := q.nextReturned(); other != m || m.outcome.err == nil {
		check(fmt.Errorf("the candidate that was to leave leads, or another campaign has ended (%w)", other.outcome.err))
	}
	check(m.session.Close(q.turn.ctx))
}

// parallel calls f for 0 to n-1, maxParallel at a time, until one fails or ctx ends, and
// returns the first error.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, maxParallel) {
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
