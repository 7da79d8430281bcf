package dropin

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// slowReader is a client whose reads block until their context ends, once slow is set and if the
// context is marked.
type slowReader struct {
	clientv3.KV
	slow atomic.Bool
}

func (kv *slowReader) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if kv.slow.Load() && ctx.Value(contextKey{}) != nil {
		<-ctx.Done()
		return clientv3.OpResponse{}, ctx.Err()
	}
	return kv.KV.Do(ctx, op)
}

func (kv *slowReader) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := kv.Do(ctx, clientv3.OpGet(key, opts...))
	return resp.Get(), err
}

// sharedRows are about handles, sessions and leases that are shared.
var sharedRows = []behaviour{
	{
		what:   "if one of two waiting campaigns of one election ends, the other keeps its position",
		theirs: "the other one leads without a key",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			made, e := s.election()
			ctx, cancel := context.WithCancel(s.ctx)
			first := s.queue(ctx, made, e, "v")
			second := after(func() error { return e.Campaign(s.ctx, "v") })
			time.Sleep(settled) // until the second one waits as well
			cancel()
			err, ok := comes(first, patience)
			s.check(ok && is(err, context.Canceled), "the first one returns %v", err)
			s.valid(leader.Resign(s.ctx))
			err, ok = comes(second, s.soon)
			s.check(ok, "the other one continues to wait")
			s.check(len(s.line()) == 1, "the other one leads without a key")
			s.check(err == nil, "the other one returns %v", err)
			s.check(e.Key() == s.keyOf(made) && e.Proclaim(s.ctx, "w") == nil, "it does not lead")
			s.check(e.Resign(s.ctx) == nil && len(s.line()) == 0, "it cannot resign")
		},
	},
	{
		what:   "if one of two campaigns of an election has won, the later end of the other deletes nothing",
		theirs: "the leader's key is deleted",
		holds: func(s *stage) {
			cli := s.cluster.Client(s.T)
			kv := &slowReader{KV: cli.KV}
			cli.KV = kv
			_, leader := s.election()
			s.lead(leader, "leader")
			made := s.sessionOn(cli, options{})
			e := s.newElection(made, s.name)
			ctx, cancel := context.WithCancel(context.WithValue(s.ctx, contextKey{}, "slow"))
			defer cancel()
			first := s.queue(ctx, made, e, "v")
			second := after(func() error { return e.Campaign(s.ctx, "v") })
			time.Sleep(settled) // until the second one waits as well
			kv.slow.Store(true)
			s.valid(leader.Resign(s.ctx))
			err, ok := comes(second, patience)
			s.check(ok && err == nil, "the second one did not win: %v", err)
			cancel()
			_, ok = comes(first, patience)
			s.check(ok, "the first one does not return")
			time.Sleep(while)
			s.check(s.has(s.keyOf(made)), "the leader's key is deleted")
			s.check(!isDone(made.Done()) && e.Key() != "" && e.Proclaim(s.ctx, "w") == nil, "it does not lead")
		},
	},
	{
		what: "a reply that was lost has no consequences for another session of the lease",
		holds: func(s *stage) {
			var lose atomic.Bool
			made := s.sessionOn(s.meddled(func(ctx context.Context, _ int64, commit carry) (*clientv3.TxnResponse, error) {
				resp, err := commit(ctx)
				if lose.CompareAndSwap(true, false) {
					return nil, errors.New("lost")
				}
				return resp, err
			}), options{})
			m := s.newMutex(made, s.name)
			lose.Store(true)
			if m.Lock(s.within(patience)) != nil { // etcd's package fails here
				s.valid(m.Lock(s.within(patience)))
			}
			s.valid(m.Unlock(s.ctx))
			other := s.session(options{lease: made.Lease()})
			other.Orphan()
			s.check(s.newMutex(other, s.name).Lock(s.within(patience)) == nil, "it cannot lock")
			time.Sleep(3 * while)
			s.check(s.has(s.keyOf(other)), "what the other one has locked is gone")
		},
	},
	{
		what: "a registration that never arrived has no consequences for another session of the lease",
		holds: func(s *stage) {
			var lose atomic.Bool
			made := s.sessionOn(s.meddled(func(ctx context.Context, _ int64, commit carry) (*clientv3.TxnResponse, error) {
				if lose.CompareAndSwap(true, false) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return commit(ctx)
			}), options{})
			e := s.newElection(made, s.name)
			lose.Store(true)
			s.check(e.Campaign(s.within(300*time.Millisecond), "one") != nil, "it wins")
			other := s.session(options{lease: made.Lease()})
			other.Orphan()
			heir := s.newElection(other, s.name)
			s.check(heir.Campaign(s.within(patience), "two") == nil, "the other one does not win")
			time.Sleep(3 * while)
			s.check(heir.Proclaim(s.ctx, "three") == nil, "the other one's key is gone")
		},
	},
	{
		what: "a resumed leadership moves to the session's own lease with the first proclaim",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "one")
			made.Orphan()
			heir := s.session(options{})
			r := s.resumeElection(heir, s.name+"/", e.Key(), e.Rev())
			s.check(r.Proclaim(s.ctx, "two") == nil, "error")
			_, err := s.cli.Revoke(s.ctx, made.Lease())
			s.valid(err)
			resp, err := r.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "two", "the key went with the old lease")
			s.check(resp.Kvs[0].Lease == int64(heir.Lease()) && resp.Kvs[0].CreateRevision == e.Rev(), "another lease, or another life")
			s.check(r.Resign(s.ctx) == nil && len(s.line()) == 0, "it cannot resign")
		},
	},
	{
		what:   "the session of a resumed leader that has proclaimed ends when its key is deleted",
		theirs: "it is not notified",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "one")
			made.Orphan()
			heir := s.session(options{lease: made.Lease()})
			r := s.resumeElection(heir, s.name+"/", e.Key(), e.Rev())
			s.check(r.Proclaim(s.ctx, "two") == nil, "error")
			s.check(!isDone(heir.Done()), "its session has ended")
			s.delete(e.Key())
			s.check(ended(heir.Done(), s.soon), "it is not notified")
		},
	},
	{
		what: "ResumeElection with a key that is not a candidate's can proclaim and resign it",
		holds: func(s *stage) {
			made := s.session(options{})
			resp, err := s.cli.Put(s.ctx, s.name+"/leader", "v", clientv3.WithLease(made.Lease()))
			s.valid(err)
			r := s.resumeElection(made, s.name+"/", s.name+"/leader", resp.Header.Revision)
			s.check(r.Proclaim(s.ctx, "w") == nil, "it does not proclaim")
			s.check(r.Resign(s.ctx) == nil && !s.has(s.name+"/leader"), "it does not resign")
		},
	},
	{
		what: "NewSession with the lease -1 returns a session that is done, which can read the leader, and no error",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "v")
			made, err := s.newSession(s.cli, options{lease: -1})
			s.check(err == nil, "error %v", err)
			made.Orphan()
			s.check(ended(made.Done(), s.soon) && made.Lease() == -1, "it is not done")
			e := s.newElection(made, s.name)
			resp, err := e.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "v", "it does not see who leads: %v", err)
			seen, ok := comes(e.Observe(s.within(patience)), patience)
			s.check(ok && seen != nil && string(seen.Kvs[0].Value) == "v", "it does not observe")
			err = e.Campaign(s.within(patience), "w")
			s.check(is(err, rpctypes.ErrLeaseNotFound), "a campaign returns %v", err)
			s.check(is(made.Close(), rpctypes.ErrLeaseNotFound), "Close returns something else")
		},
	},
	{
		what: "with a client that is closed, NewSession is an error, also for a lease to be taken up",
		holds: func(s *stage) {
			lent, err := s.cli.Grant(s.ctx, quiet)
			s.valid(err)
			cli, err := s.cluster.Dial()
			s.valid(err)
			s.valid(cli.Close())
			_, err = s.newSession(cli, options{})
			s.check(err != nil, "no error")
			_, err = s.newSession(cli, options{lease: lent.ID})
			var halted clientv3.ErrKeepAliveHalted
			s.check(errors.As(err, &halted), "for a lease it returns %v", err)
		},
	},
	{
		what: "after the lease is lost Campaign, Lock and TryLock are ErrLeaseNotFound",
		holds: func(s *stage) {
			made := s.session(seconds(9)) // the lease is renewed again soon
			e := s.newElection(made, s.name)
			s.lead(e, "v")
			_, err := s.cli.Revoke(s.ctx, made.Lease())
			s.valid(err)
			s.check(ended(made.Done(), patience), "the session lives")
			s.check(is(e.Campaign(s.within(patience), "w"), rpctypes.ErrLeaseNotFound), "Campaign returns something else")
			other := s.newElection(made, s.name+"-other")
			s.check(is(other.Campaign(s.within(patience), "w"), rpctypes.ErrLeaseNotFound), "another Campaign returns something else")
			m := s.newMutex(made, s.name+"-m")
			s.check(is(m.Lock(s.within(patience)), rpctypes.ErrLeaseNotFound), "Lock returns something else")
			s.check(is(m.TryLock(s.within(patience)), rpctypes.ErrLeaseNotFound), "TryLock returns something else")
		},
	},
}
