package renewal

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// members answer when the test lets them.
type members struct {
	sent   int
	answer chan uint64 // 0: an error
}

func (m *members) MemberList(ctx context.Context, _ ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	m.sent++
	select {
	case term := <-m.answer:
		if term == 0 {
			return nil, errors.New("no quorum")
		}
		return &clientv3.MemberListResponse{Header: &pb.ResponseHeader{RaftTerm: term}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// asked records the answer to a question.
type asked struct {
	term uint64
	err  error
	n    int
}

func (a *asked) report(term uint64, err error) { a.term, a.err, a.n = term, err, a.n+1 }

func questions(t *testing.T, more bool, f func(m *Majority, from *members)) {
	synctest.Test(t, func(*testing.T) {
		from := &members{answer: make(chan uint64)}
		m := newMajority(from, func() bool { return more })
		f(m, from)
		m.tasks.Wait()
	})
}

// One answer is for all questions that were asked before the request was sent, and for none that
// was asked later (decision 0015).
func TestOneAnswerForThoseBefore(t *testing.T) {
	questions(t, false, func(m *Majority, from *members) {
		var first, second, third asked
		m.Ask(time.Second, first.report)
		synctest.Wait()
		m.Ask(time.Second, second.report)
		m.Ask(time.Second, third.report)
		synctest.Wait()
		require.Equal(t, 1, from.sent)
		from.answer <- 7
		synctest.Wait()
		require.Equal(t, asked{7, nil, 1}, first)
		require.Zero(t, second, "it asked after the question was sent")
		require.Equal(t, 2, from.sent)
		from.answer <- 8
		synctest.Wait()
		require.Equal(t, asked{8, nil, 1}, second)
		require.Equal(t, asked{8, nil, 1}, third)
		require.Equal(t, asked{7, nil, 1}, first)
	})
}

// While more renewals are about to be answered, questions wait for them.
func TestAsksWhenTheLastIsAnswered(t *testing.T) {
	questions(t, true, func(m *Majority, from *members) {
		var first, second asked
		m.Ask(time.Second, first.report)
		m.Ask(time.Second, second.report)
		synctest.Wait()
		require.Zero(t, from.sent)
		m.more = func() bool { return false }
		m.Flush()
		from.answer <- 7
		synctest.Wait()
		require.Equal(t, 1, from.sent)
		require.Equal(t, asked{7, nil, 1}, first)
		require.Equal(t, asked{7, nil, 1}, second)
	})
	questions(t, true, func(m *Majority, from *members) { // but there is a limit
		var all [together]asked
		for i := range all {
			m.Ask(time.Second, all[i].report)
		}
		from.answer <- 7
		synctest.Wait()
		require.Equal(t, asked{7, nil, 1}, all[0])
	})
}

// A request that is not answered is sent once more for all questions. A failure is not reported
// while another request is under way.
func TestAgain(t *testing.T) {
	questions(t, false, func(m *Majority, from *members) {
		var first, second asked
		one := m.Ask(time.Second, first.report)
		synctest.Wait()
		two := m.Ask(time.Second, second.report) // waits for the request that is not answered
		one.Again()
		synctest.Wait()
		two.Again()
		one.Again() // has two requests
		synctest.Wait()
		require.Equal(t, 3, from.sent)
		from.answer <- 0
		synctest.Wait()
		require.Zero(t, first)
		require.Zero(t, second)
		from.answer <- 0
		from.answer <- 0
		synctest.Wait()
		require.Error(t, first.err)
		require.Error(t, second.err)
		require.Equal(t, 1, first.n)
		require.Equal(t, 1, second.n)
	})
}

// Nothing is reported after Stop, and a request that no question waits for is cancelled.
func TestStoppedQuestions(t *testing.T) {
	questions(t, false, func(m *Majority, _ *members) {
		var first asked
		q := m.Ask(time.Hour, first.report)
		synctest.Wait()
		begun := time.Now()
		q.Stop()
		q.Stop()
		q.Again()
		m.tasks.Wait()
		require.Zero(t, time.Since(begun))
		require.Zero(t, first)
	})
}

// wire is a stream of a test: it receives what is put in answers.
type wire struct {
	grpc.ClientStream
	ctx     context.Context
	sent    []int64
	answers chan *pb.LeaseKeepAliveResponse
	full    chan struct{} // if not nil, Send blocks until it is closed
}

func (w *wire) Send(r *pb.LeaseKeepAliveRequest) error {
	w.sent = append(w.sent, r.ID)
	if w.full != nil {
		<-w.full
	}
	return nil
}

func (w *wire) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case a, ok := <-w.answers:
		if !ok {
			return nil, io.EOF
		}
		return a, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

func (w *wire) answer(id, ttl int64, term uint64) {
	w.answers <- &pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{RaftTerm: term}, ID: id, TTL: ttl}
	synctest.Wait()
}

// told records the answer to a renewal.
type told struct {
	Answer
	err error
	n   int
}

func (r *told) report(a Answer, err error) { r.Answer, r.err, r.n = a, err, r.n+1 }

func streams(t *testing.T, f func(s *Stream, opened *[]*wire)) {
	synctest.Test(t, func(*testing.T) {
		var opened []*wire
		s := newStream(func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
			w := &wire{ctx: ctx, answers: make(chan *pb.LeaseKeepAliveResponse)}
			opened = append(opened, w)
			return w, nil
		})
		f(s, &opened)
		s.close()
	})
}

func TestRenewalsOnOneStream(t *testing.T) {
	streams(t, func(s *Stream, opened *[]*wire) {
		var a, b told
		s.Renew(1, a.report)
		s.Renew(2, b.report)
		synctest.Wait()
		require.Len(t, *opened, 1)
		w := (*opened)[0]
		require.Equal(t, []int64{1, 2}, w.sent)
		w.answer(1, 10, 7)
		require.Equal(t, told{Answer: Answer{7, 10 * time.Second}, n: 1}, a)
		require.Zero(t, b)
		w.answer(2, -1, 7)
		require.Equal(t, told{Answer: Answer{7, 0}, n: 1}, b, "the lease is gone")
		s.Renew(1, a.report)
		synctest.Wait()
		w.answer(1, 10, 7)
		require.Equal(t, 2, a.n)
		require.Len(t, *opened, 1)
	})
}

// A late answer belongs to the renewal for which it was sent, or is dropped. It is not taken for
// the answer to a later renewal of the same lease (G3).
func TestLateAnswers(t *testing.T) {
	streams(t, func(s *Stream, opened *[]*wire) {
		var slow, other, next told
		first := s.Renew(1, slow.report)
		s.Renew(2, other.report)
		synctest.Wait()
		first.Slow()
		require.False(t, s.busy(), "it is not waited for")
		s.Renew(1, next.report)
		synctest.Wait()
		require.Len(t, *opened, 2, "put on a stream that has not answered")
		w := (*opened)[0]
		first.Stop()
		w.answer(1, 10, 7)
		require.Zero(t, slow)
		require.Zero(t, next)
		require.NoError(t, w.ctx.Err(), "another one waits for its answer there")
		w.answer(2, 10, 7)
		require.Equal(t, 1, other.n)
		require.Error(t, w.ctx.Err())
		(*opened)[1].answer(1, 10, 7)
		require.Equal(t, 1, next.n)
	})
}

// A renewal that is stopped behind one that cannot be sent yet is not sent any more: an abandoned
// session sends nothing. The answers still belong to those that were sent.
//
// Fails if all renewals count as sent before the first one is.
func TestStoppedBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answers: make(chan *pb.LeaseKeepAliveResponse), full: make(chan struct{})}
		s := newStream(func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) { w.ctx = ctx; return w, nil })
		defer s.close()
		var one, two, three told
		s.Renew(1, one.report)
		second := s.Renew(2, two.report)
		s.Renew(3, three.report)
		synctest.Wait()
		second.Stop()
		close(w.full)
		synctest.Wait()
		require.Equal(t, []int64{1, 3}, w.sent)
		w.answer(1, 10, 7)
		w.answer(3, 10, 7)
		require.Equal(t, 1, one.n)
		require.Zero(t, two)
		require.Equal(t, told{Answer: Answer{7, 10 * time.Second}, n: 1}, three)
	})
}

// The end of a stream, and an answer that is out of order, end all renewals on it. Later renewals
// are put on a new stream.
func TestEndOfAStream(t *testing.T) {
	for name, end := range map[string]func(w *wire){
		"end":          func(w *wire) { close(w.answers) },
		"out of order": func(w *wire) { w.answer(2, 10, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			streams(t, func(s *Stream, opened *[]*wire) {
				idle := 0
				s.idle = func() { idle++ }
				var a, b told
				s.Renew(1, a.report)
				s.Renew(2, b.report)
				synctest.Wait()
				end((*opened)[0])
				synctest.Wait()
				require.Error(t, a.err)
				require.Error(t, b.err)
				require.Positive(t, idle)
				s.Renew(1, a.report)
				synctest.Wait()
				require.Len(t, *opened, 2)
				(*opened)[1].answer(1, 10, 7)
				require.NoError(t, a.err)
			})
		})
	}
}

// A gRPC proxy answers only when it renews the lease itself: no more renewals are put on its
// streams.
func TestProxy(t *testing.T) {
	streams(t, func(s *Stream, opened *[]*wire) {
		var a told
		require.True(t, s.Usable())
		s.Renew(1, a.report)
		synctest.Wait()
		(*opened)[0].answer(1, 10, 0)
		require.Equal(t, 1, a.n)
		require.False(t, s.Usable())
	})
}

// joiner renews when other sessions do.
type joiner struct{ renew func() }

func (j *joiner) Together() { j.renew() }

// Sessions that are nearly due renew together, up to a limit, once the stream has answered.
func TestTogether(t *testing.T) {
	streams(t, func(s *Stream, opened *[]*wire) {
		for id := range 2 * together {
			s.Join(&joiner{func() { s.Renew(clientv3.LeaseID(id+2), func(Answer, error) {}) }})
		}
		var a told
		s.Renew(1, a.report)
		synctest.Wait()
		w := (*opened)[0]
		require.Len(t, w.sent, 1)
		w.answer(1, 10, 7)
		s.Renew(1, a.report)
		synctest.Wait()
		require.Len(t, w.sent, 1+together)
		require.EqualValues(t, 1, w.sent[1])
	})
}

// The sessions of one client share a Client. A client whose Lease is wrapped has no stream. The
// last Release leaves no goroutine.
func TestShared(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	one, two := Of(cli, cli), Of(cli, cli)
	require.Same(t, one, two)
	require.True(t, one.Stream.Usable())
	wrapped := etcdtest.Shared(t).Client(t)
	wrapped.Lease = namespace.NewLease(wrapped.Lease, "x/")
	three := Of(wrapped, cli)
	require.False(t, three.Stream.Usable())
	three.Release()

	grant, err := cli.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	answers := make(chan Answer, 1)
	one.Stream.Renew(grant.ID, func(a Answer, err error) {
		if err == nil {
			answers <- a
		}
	})
	got := etcdtest.Take(t, answers, "the answer")
	require.Equal(t, 60*time.Second, got.TTL)
	require.Positive(t, got.Term)
	one.Release()
	two.Release()
	anew := Of(cli, cli)
	defer anew.Release()
	require.NotSame(t, one, anew, "nobody had it any more")
}
