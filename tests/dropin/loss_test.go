package dropin

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// unanswered is a leader whose resignation was not answered; sent means that the request was
// carried out.
func (s *stage) unanswered(sent bool) (session, election) {
	var lose atomic.Bool
	made := s.sessionOn(s.meddled(func(ctx context.Context, _ int64, commit carry) (*clientv3.TxnResponse, error) {
		if !lose.Load() {
			return commit(ctx)
		}
		if sent {
			_, err := commit(context.WithoutCancel(ctx))
			s.valid(err)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}), options{})
	e := s.newElection(made, s.name)
	s.lead(e, "leader")
	lose.Store(true)
	err := e.Resign(s.within(shortly))
	s.check(errors.Is(err, context.DeadlineExceeded), "the resignation returns %v", err)
	lose.Store(false)
	return made, e
}

// told makes a candidate wait behind a leader and lose its key or lease; it must be notified at
// once.
func (s *stage) told(lose func(waiter session)) {
	_, leader := s.election()
	s.lead(leader, "leader")
	made, e := s.election()
	result := s.queue(s.within(patience), made, e, "waiter")
	lose(made)
	err, ok := comes(result, s.soon)
	s.check(ok, "it continues to wait")
	s.check(errors.Is(err, s.errNotLeader), "it returns %v", err)
}

// lossRows are about keys and leases that are lost.
var lossRows = []behaviour{
	{
		what:   "a waiter that has lost its key does not win when it would be the oldest",
		theirs: "it leads without a key",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			made, e := s.election()
			result := s.queue(s.ctx, made, e, "phantom")
			s.delete(s.keyOf(made))
			s.valid(leader.Resign(s.ctx))
			err, ok := comes(result, patience)
			s.check(ok, "it continues to wait")
			s.check(err != nil, "it leads without a key")
			s.check(e.Key() == "", "it has a key")
		},
	},
	{
		what:   "a waiter that has lost its key returns at once, with ErrElectionNotLeader",
		theirs: "it continues to wait",
		holds: func(s *stage) {
			s.told(func(made session) {
				s.delete(s.keyOf(made))
			})
		},
	},
	{
		what:   "a waiter that has lost its lease returns at once, and never wins",
		theirs: "it continues to wait",
		holds: func(s *stage) {
			s.told(func(made session) {
				_, err := s.cli.Revoke(s.ctx, made.Lease())
				s.valid(err)
			})
		},
	},
	{
		what:   "a waiter whose session is closed returns at once, and never wins",
		theirs: "it continues to wait",
		holds: func(s *stage) {
			s.told(func(made session) {
				s.valid(made.Close())
			})
		},
	},
	{
		what:   "a waiter that is resigned is not elected later",
		theirs: "it continues to wait",
		holds: func(s *stage) {
			s.told(func(made session) {
				resp, err := s.cli.Get(s.ctx, s.keyOf(made))
				s.valid(err)
				// It uses a handle of its own: those of etcd's package are for one goroutine.
				r := s.resumeElection(made, s.name, s.keyOf(made), resp.Kvs[0].CreateRevision)
				s.check(r.Resign(s.ctx) == nil, "error")
				s.check(len(s.line()) == 1, "its key is there")
			})
		},
	},
	{
		what:   "the session of a leader whose key is deleted ends",
		theirs: "it is not notified",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "leader")
			s.delete(e.Key())
			s.check(ended(made.Done(), s.soon), "it is not notified")
			s.check(ended(made.Ctx().Done(), s.soon), "its context lives on")
			s.check(is(e.Proclaim(s.ctx, "v"), s.errNotLeader), "it proclaims")
		},
	},
	{
		what:   "a key that is put by hand without a lease is still deleted with its session",
		theirs: "it stays for ever",
		holds: func(s *stage) {
			leading, leader := s.election()
			s.lead(leader, "leader")
			waiting, waiter := s.election()
			result := s.queue(s.ctx, waiting, waiter, "waiter")
			for _, made := range []session{leading, waiting} {
				put, err := s.cli.Put(s.ctx, s.keyOf(made), "by hand")
				s.valid(err)
				reached(func() bool { // where the overwritten key is ignored, it still exists and the session is closed
					resp, err := s.cli.Get(s.ctx, s.keyOf(made))
					s.valid(err)
					return resp.Kvs[0].ModRevision > put.Header.Revision
				}, s.soon)
				s.check(!isDone(made.Done()), "its session has ended")
			}
			s.valid(leading.Close())
			s.check(!s.has(s.keyOf(leading)), "it stays for ever")
			err, ok := comes(result, s.soon)
			s.check(ok && err == nil, "the next one does not lead: %v", err)
			s.valid(waiting.Close())
			s.check(!s.has(s.keyOf(waiting)), "it stays for ever")
		},
	},
	{
		what: "a leader that resigns, and campaigns again, keeps its session",
		holds: func(s *stage) {
			made, e := s.election()
			for i := range 20 {
				s.lead(e, "leader")
				if i%2 == 0 {
					s.check(e.Resign(s.ctx) == nil, "error")
					continue
				}
				other := s.resumeElection(made, s.name, e.Key(), e.Rev())
				s.check(other.Resign(s.ctx) == nil, "error")
			}
			time.Sleep(while)
			s.check(!isDone(made.Done()), "its session has ended")
		},
	},
	{
		what:   "Proclaim after a loss returns ErrElectionNotLeader, each time",
		theirs: "the second time it returns etcdserver: key is not provided",
		holds: func(s *stage) {
			_, e := s.election()
			s.lead(e, "leader")
			s.delete(e.Key())
			s.check(is(e.Proclaim(s.ctx, "one"), s.errNotLeader), "the first time it returns something else")
			err := e.Proclaim(s.ctx, "two")
			s.check(is(err, s.errNotLeader), "the second time it returns %v", err)
		},
	},
	{
		what:   "a resignation under a context that has ended can be repeated",
		theirs: "it still leads",
		holds: func(s *stage) {
			_, e := s.election()
			s.lead(e, "leader")
			dead, cancel := context.WithCancel(s.ctx)
			cancel()
			s.check(is(e.Resign(dead), context.Canceled), "the first time it returns something else")
			s.check(e.Resign(s.ctx) == nil, "the second time it fails")
			s.check(len(s.line()) == 0, "it still leads")
		},
	},
	{
		what:   "a leader whose resignation got no answer does not continue to lead without its key",
		theirs: "it is not notified",
		holds: func(s *stage) {
			made, e := s.unanswered(true)
			s.check(len(s.line()) == 0, "INVALID: the request was not carried out")
			_, next := s.election()
			s.lead(next, "next")
			s.check(ended(made.Done(), s.soon), "it is not notified")
			s.check(e.Resign(s.ctx) == nil && len(s.line()) == 1, "it cannot resign again")
		},
	},
	{
		what:   "a leader whose resignation was not sent continues to lead, and can resign again",
		theirs: "it cannot resign again",
		holds: func(s *stage) {
			made, e := s.unanswered(false)
			time.Sleep(while)
			s.check(!isDone(made.Done()) && len(s.line()) == 1, "its session has ended")
			s.check(e.Resign(s.ctx) == nil && len(s.line()) == 0, "it cannot resign again")
			time.Sleep(while)
			s.check(!isDone(made.Done()), "its own resignation has ended its session")
		},
	},
	{
		what:   "the session of a leader whose resignation was not sent ends when its key is deleted",
		theirs: "it is not notified",
		holds: func(s *stage) {
			made, _ := s.unanswered(false)
			s.delete(s.keyOf(made))
			s.check(ended(made.Done(), s.soon), "it is not notified")
		},
	},
	{
		what:   "a leader whose further campaign fails continues to lead, and can proclaim",
		theirs: "it cannot proclaim",
		holds: func(s *stage) {
			ctx, cancel := context.WithCancel(s.ctx)
			cli := s.meddled(func(ctx context.Context, n int64, commit carry) (*clientv3.TxnResponse, error) {
				if n == 2 {
					defer cancel() // after the second campaign has found its key, before it proclaims
				}
				return commit(ctx)
			})
			made := s.sessionOn(cli, options{})
			e := s.newElection(made, s.name)
			s.lead(e, "one")
			s.check(is(e.Campaign(ctx, "two"), context.Canceled), "the campaign returns something else")
			s.check(len(s.line()) == 1, "its key is gone")
			s.check(e.Proclaim(s.ctx, "three") == nil, "it cannot proclaim")
			s.check(e.Resign(s.ctx) == nil && len(s.line()) == 0, "it cannot resign")
		},
	},
}
