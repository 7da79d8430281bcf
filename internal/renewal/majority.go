package renewal

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Members is the API that asks a majority: a lease.Majority.
type Members interface {
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
}

// Majority asks a majority of etcd's members, with one request for many questions.
//
// Invariant: an answer is reported only to questions that were asked before the request was sent.
type Majority struct {
	members Members
	// more reports whether more renewals are about to be answered.
	more  func() bool
	tasks sync.WaitGroup

	mu      sync.Mutex
	waiting map[*Question]struct{}
	sent    int // requests under way
}

// Question is a question that waits for an answer.
type Question struct {
	of      *Majority
	timeout time.Duration
	report  func(term uint64, err error)
	// in are the requests under way that answer this question.
	in []*request
}

// request is a request that was sent.
type request struct {
	covers []*Question
	left   int // the number of covers that still wait
	cancel context.CancelFunc
}

func newMajority(members Members, more func() bool) *Majority {
	return &Majority{members: members, more: more, waiting: make(map[*Question]struct{})}
}

// Ask reports the Raft term in which a majority answers, or an error if no majority answers within
// the time-out. It reports once, unless the question is stopped before. A request that is already
// under way does not answer the question: all questions that are asked meanwhile wait for the end
// of that request, and share the next one. If renewals are answered one after the other, the
// request is sent after the last answer. Ask does not block; report is called on a goroutine
// without any mutex.
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

// Again sends a second request, which etcd's client sends to another member, unless two are under
// way already.
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

// drop removes the question, and cancels requests that no question waits for. The caller holds the
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

// send sends a request for all waiting questions. The caller holds the mutex.
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

// answered returns the questions to which the answer is reported. A failure is reported only if no
// other request for the question is under way.
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
		q.in = slices.DeleteFunc(q.in, func(other *request) bool { return other == r })
	}
	m.next()
	return told
}
