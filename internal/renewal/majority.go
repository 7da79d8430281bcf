package renewal

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Members is what a majority is asked with: a lease.Majority.
type Members interface {
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
}

// Majority asks a majority of etcd's members, once for many.
//
// Invariant: an answer is reported to those only who asked before the question was sent.
type Majority struct {
	members Members
	// more reports whether more renewals are about to be answered.
	more  func() bool
	tasks sync.WaitGroup

	mu      sync.Mutex
	waiting map[*Question]struct{}
	sent    int // questions under way
}

// Question is one that waits for an answer.
type Question struct {
	of      *Majority
	timeout time.Duration
	report  func(term uint64, err error)
	// in are the requests under way whose answer is for it.
	in []*request
}

// request is one that was sent.
type request struct {
	covers []*Question
	left   int // of these, those that still wait
	cancel context.CancelFunc
}

func newMajority(members Members, more func() bool) *Majority {
	return &Majority{members: members, more: more, waiting: make(map[*Question]struct{})}
}

// Ask reports in which Raft term a majority answers, or that it does not within the time-out,
// once, unless the question is stopped before. The answer to a request that is under way already
// is none: all who ask meanwhile wait for its end, and are then asked for by one; so are those
// whose renewals are answered one after the other, when the last one is. It does not block; report
// is called on a goroutine without any mutex.
func (m *Majority) Ask(timeout time.Duration, report func(term uint64, err error)) *Question {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &Question{of: m, timeout: timeout, report: report}
	m.waiting[q] = struct{}{}
	m.next()
	return q
}

// Flush is called when no more renewals are about to be answered.
func (m *Majority) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next()
}

// next sends a request if it is time for one. The caller holds the mutex.
func (m *Majority) next() {
	if m.sent > 0 || len(m.waiting) == 0 || len(m.waiting) < together && m.more() {
		return
	}
	m.send()
}

// Again sends a request beside the first, which etcd's client sends to another member; unless two
// are under way already.
func (q *Question) Again() {
	m := q.of
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, waits := m.waiting[q]; waits && len(q.in) < 2 {
		m.send()
	}
}

// Stop ends the question. A report that has begun goes on.
func (q *Question) Stop() {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	q.drop()
}

// drop takes the question out, and ends requests that nobody waits for. The caller holds the
// mutex.
func (q *Question) drop() {
	delete(q.of.waiting, q)
	for _, r := range q.in {
		if r.left--; r.left == 0 {
			r.cancel()
		}
	}
	q.in = nil
}

// send sends a request for all that wait. The caller holds the mutex.
func (m *Majority) send() {
	r := &request{left: len(m.waiting)}
	var timeout time.Duration
	for q := range m.waiting {
		r.covers = append(r.covers, q)
		q.in = append(q.in, r)
		timeout = max(timeout, q.timeout)
	}
	var ctx context.Context
	ctx, r.cancel = context.WithTimeout(context.Background(), timeout)
	m.sent++
	m.tasks.Go(func() {
		defer r.cancel()
		resp, err := m.members.MemberList(ctx)
		var term uint64
		if err == nil {
			term = resp.Header.GetRaftTerm()
		}
		for _, q := range m.answered(r, err) {
			q.report(term, err)
		}
	})
}

// answered returns those to whom the answer is to be reported: a failure only when no other
// request is under way for them.
func (m *Majority) answered(r *request, err error) (told []*Question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent--
	for _, q := range r.covers {
		if _, waits := m.waiting[q]; !waits {
			continue
		}
		if err == nil || len(q.in) == 1 {
			q.drop()
			told = append(told, q)
			continue
		}
		for i, other := range q.in {
			if other == r {
				q.in = append(q.in[:i:i], q.in[i+1:]...)
				break
			}
		}
	}
	m.next()
	return told
}
