package dropin

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// lostReply loses the reply of the first transaction: it is carried out, however long that takes,
// and the caller receives no reply until its context ends.
func lostReply(ctx context.Context, n int64, commit carry) (*clientv3.TxnResponse, error) {
	if n == 1 {
		if _, err := commit(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return commit(ctx)
}

// brokenReply returns a connection error in place of the first reply.
func brokenReply(ctx context.Context, n int64, commit carry) (*clientv3.TxnResponse, error) {
	resp, err := commit(ctx)
	if n == 1 && err == nil {
		return nil, status.Error(codes.Unavailable, "transport is closing")
	}
	return resp, err
}

// ghostRows are about lost replies and broken networks.
var ghostRows = []behaviour{
	{
		what:   "a campaign that is given up after its reply was lost leaves no key in the queue",
		theirs: "an orphaned key blocks the queue",
		holds: func(s *stage) {
			made := s.sessionOn(s.meddled(lostReply), options{})
			e := s.newElection(made, s.name)
			err := e.Campaign(s.within(shortly), "ghost")
			s.check(errors.Is(err, context.DeadlineExceeded), "it returns %v", err)
			s.check(len(s.line()) == 0, "an orphaned key blocks the queue")
			err, ok := comes(s.bystander(s.within(s.soon)), patience)
			s.check(ok && err == nil, "an orphaned key blocks the queue")
			s.check(!isDone(made.Done()), "its session has ended")
		},
	},
	{
		what:   "a campaign whose reply is lost continues, and wins with its key",
		theirs: "it gives up: rpc error: code = Unavailable",
		holds: func(s *stage) {
			made := s.sessionOn(s.meddled(brokenReply), options{})
			e := s.newElection(made, s.name)
			err := e.Campaign(s.within(patience), "v")
			s.check(err == nil, "it gives up: %v", err)
			s.check(e.Proclaim(s.ctx, "w") == nil && len(s.line()) == 1, "it does not lead")
		},
	},
	{
		what:   "a lock that is given up after its reply was lost is not held by an orphaned key",
		theirs: "an orphaned key holds the mutex",
		holds: func(s *stage) {
			m := s.newMutex(s.sessionOn(s.meddled(lostReply), options{}), s.name)
			err := m.Lock(s.within(shortly))
			s.check(errors.Is(err, context.DeadlineExceeded), "it returns %v", err)
			other := s.newMutex(s.session(options{}), s.name)
			s.check(other.Lock(s.within(s.soon)) == nil, "an orphaned key holds the mutex")
		},
	},
	{
		what:   "a campaign that is cancelled while etcd cannot be reached returns, and its key is deleted when etcd can be reached",
		theirs: "it does not return",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			var rec etcdtest.Recorder
			host := s.cluster.Host(s.T)
			made := s.sessionOn(host.Client(s.T, rec.Attach), options{})
			e := s.newElection(made, s.name)
			ctx, cancel := context.WithCancel(s.ctx)
			result := s.queue(ctx, made, e, "v")
			s.waits(&rec, leader.Key())
			host.Cut()
			defer host.Mend()
			cancel()
			err, ok := comes(result, s.soon)
			s.check(ok, "it does not return")
			s.check(is(err, context.Canceled), "it returns %v", err)
			s.check(s.has(s.keyOf(made)), "INVALID: the key went through a cut network")
			host.Mend()
			s.check(reached(func() bool { return !s.has(s.keyOf(made)) }, s.soon), "its key stays")
		},
	},
}
