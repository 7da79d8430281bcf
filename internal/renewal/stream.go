package renewal

import (
	"context"
	"errors"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// together is the maximum number of renewals that are sent together. etcd handles the renewals of
// one stream one after the other, and followers send a request to their leader for each.
const together = 100

var errOrder = errors.New("a reply on the stream does not belong to the oldest renewal")

// Member is a session that renews on a stream.
type Member interface {
	// Together is called when another session renews now. It may call Renew.
	Together()
}

// Stream renews leases on one stream of a client. A stream that has failed to answer is replaced: a
// late answer must not be taken for the answer to a later renewal of the lease (G3).
type Stream struct {
	// open opens a stream; nil: there is none.
	open func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error)
	// idle is called, without the mutex, when the stream is no longer busy.
	idle  func()
	tasks sync.WaitGroup

	mu      sync.Mutex
	members map[Member]struct{}
	line    *line // for new renewals; nil: a new one is opened
	proxied bool
}

// line is one stream of etcd.
type line struct {
	end context.CancelFunc

	// The mutex of Stream guards the following fields.
	stream  pb.Lease_LeaseKeepAliveClient // nil until it is open
	queue   []*Renewal                    // to be sent
	sent    []*Renewal                    // not answered, in the order in which answers are expected
	waiting int                           // the number of both, without those that were stopped
	sending bool
	proven  bool // it has answered
}

// Renewal is a renewal that waits for its answer.
type Renewal struct {
	of     *Stream
	on     *line
	id     clientv3.LeaseID
	report func(Answer, error)
	over   bool
}

func newStream(open func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error)) *Stream {
	return &Stream{open: open, idle: func() {}, members: make(map[Member]struct{})}
}

// Usable reports whether renewals can be put on the stream. Through a gRPC proxy they cannot: it
// answers only when it renews the lease itself.
func (s *Stream) Usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open != nil && !s.proxied
}

// busy reports whether renewals are about to be answered.
func (s *Stream) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line != nil && s.line.waiting > 0
}

// Join registers a session that can renew together with others; Leave ends it.
func (s *Stream) Join(m Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[m] = struct{}{}
}

// Leave ends what Join began.
func (s *Stream) Leave(m Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, m)
}

// close ends the stream, on which no renewal waits any more, and blocks until no goroutine is left.
func (s *Stream) close() {
	s.mu.Lock()
	if s.line != nil {
		s.line.end()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}

// Renew renews a lease. It reports the answer, or the end of the stream, once, unless the renewal
// is stopped before. It does not block; report is called on a goroutine of the stream, without any
// mutex, and must not block.
func (s *Stream) Renew(id clientv3.LeaseID, report func(Answer, error)) *Renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == nil {
		ctx, end := context.WithCancel(context.Background())
		l := &line{end: end}
		s.line = l
		s.tasks.Go(func() { s.run(ctx, l) })
	}
	l := s.line
	r := &Renewal{of: s, on: l, id: id, report: report}
	l.queue = append(l.queue, r)
	l.waiting++
	s.flush(l)
	return r
}

// Slow notes that the answer is late: it may still arrive, but no more renewals are put on that
// stream.
func (r *Renewal) Slow() {
	r.of.mu.Lock()
	r.of.drain(r.on)
	r.of.mu.Unlock()
	r.of.idle()
}

// Stop ends the renewal. A report that has begun goes on.
func (r *Renewal) Stop() {
	r.of.mu.Lock()
	waits := !r.over
	if waits {
		r.finish()
		r.of.drain(r.on)
	}
	r.of.mu.Unlock()
	if waits {
		r.of.idle()
	}
}

// finish notes that the renewal does not wait for its answer any more. The caller holds the mutex.
func (r *Renewal) finish() {
	r.over = true
	r.on.waiting--
}

// drain lets no more renewals be put on a stream, and ends it if no renewal waits on it. The caller
// holds the mutex.
func (s *Stream) drain(l *line) {
	if s.line == l {
		s.line = nil
	}
	if l.waiting == 0 {
		l.end()
	}
}

// run opens a stream and handles its answers, until it ends.
func (s *Stream) run(ctx context.Context, l *line) {
	defer l.end()
	stream, err := s.open(ctx)
	if err == nil {
		s.mu.Lock()
		l.stream = stream
		s.flush(l)
		s.mu.Unlock()
	}
	for err == nil {
		var resp *pb.LeaseKeepAliveResponse
		if resp, err = stream.Recv(); err == nil {
			err = s.answered(l, resp)
		}
	}
	s.mu.Lock()
	s.drain(l)
	var told []*Renewal
	for _, r := range append(l.sent, l.queue...) {
		if !r.over {
			r.finish()
			told = append(told, r)
		}
	}
	l.sent, l.queue = nil, nil
	s.mu.Unlock()
	for _, r := range told {
		r.report(Answer{}, err)
	}
	s.idle()
}

// answered handles one answer.
func (s *Stream) answered(l *line, resp *pb.LeaseKeepAliveResponse) error {
	s.mu.Lock()
	term := resp.Header.GetRaftTerm()
	s.proxied = s.proxied || term == 0
	if len(l.sent) == 0 || int64(l.sent[0].id) != resp.ID {
		s.mu.Unlock()
		return errOrder
	}
	r := l.sent[0]
	l.sent, l.proven = l.sent[1:], true
	told := !r.over
	if told {
		r.finish()
	}
	if s.proxied || s.line != l {
		s.drain(l)
	}
	last := l.waiting == 0
	s.mu.Unlock()
	if told {
		r.report(answer(term, resp.TTL), nil)
	}
	if last {
		s.idle()
	}
	return nil
}

// flush starts to send the queue. The caller holds the mutex.
func (s *Stream) flush(l *line) {
	if l.stream == nil || l.sending || len(l.queue) == 0 {
		return
	}
	l.sending = true
	s.tasks.Go(func() { s.send(l) })
}

// send sends the queue, and renewals that are nearly due with it.
func (s *Stream) send(l *line) {
	s.gather(l)
	for { // until the queue is empty
		s.mu.Lock()
		for len(l.queue) > 0 && l.queue[0].over { // some are stopped while Send blocks
			l.queue = l.queue[1:]
		}
		if l.sending = len(l.queue) > 0; !l.sending {
			s.mu.Unlock()
			return
		}
		r := l.queue[0]
		l.queue, l.sent = l.queue[1:], append(l.sent, r)
		s.mu.Unlock()
		_ = l.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(r.id)}) // Recv returns the reason of a failure
	}
}

// gather calls the other sessions to renew now, unless the stream has not answered yet: its member
// may not respond.
func (s *Stream) gather(l *line) {
	s.mu.Lock()
	if !l.proven {
		s.mu.Unlock()
		return
	}
	members := make([]Member, 0, len(s.members))
	for m := range s.members {
		members = append(members, m)
	}
	s.mu.Unlock()
	for _, m := range members {
		s.mu.Lock()
		full := s.line != l || len(l.queue) >= together
		s.mu.Unlock()
		if full {
			return
		}
		m.Together()
	}
}
