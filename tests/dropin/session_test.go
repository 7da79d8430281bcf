package dropin

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func seconds(n int) options { return options{ttl: &n} }

// granted is the TTL that a lease was granted; alive is what is left of it.
func (s *stage) granted(id clientv3.LeaseID) int64 {
	resp, err := s.cli.TimeToLive(s.within(patience), id)
	s.valid(err)
	return resp.GrantedTTL
}

func (s *stage) alive(id clientv3.LeaseID) bool {
	resp, err := s.cli.TimeToLive(s.within(patience), id)
	s.valid(err)
	return resp.TTL > 0
}

type contextKey struct{}

var sessionRows = []behaviour{
	{
		what: "a session has a lease of 60 s unless WithTTL sets another one; a TTL that is not positive is ignored",
		holds: func(s *stage) {
			for _, c := range []struct {
				ttl  []int
				want int64
			}{{nil, 60}, {[]int{7}, 7}, {[]int{0}, 60}, {[]int{-3}, 60}, {[]int{200000}, 200000}} {
				o := options{}
				if c.ttl != nil {
					o.ttl = &c.ttl[0]
				}
				made, err := s.newSession(s.cli, o)
				s.check(err == nil, "no session with %v: %v", c.ttl, err)
				s.check(s.granted(made.Lease()) == c.want, "granted %d s for %v", s.granted(made.Lease()), c.ttl)
				s.check(made.Client() == s.cli, "another client")
				s.valid(made.Close())
			}
		},
	},
	{
		what: "a session keeps its lease alive, its own and one that it takes up",
		holds: func(s *stage) {
			lent, err := s.cli.Grant(s.ctx, 4)
			s.valid(err)
			one := s.session(seconds(4))
			other := s.session(options{lease: lent.ID})
			s.check(other.Lease() == lent.ID, "another lease")
			over := time.After(9 * time.Second)
			select {
			case <-one.Done():
				s.check(false, "a session is done")
			case <-other.Done():
				s.check(false, "a session that took a lease up is done")
			case <-over:
			}
			s.check(s.alive(one.Lease()) && s.alive(other.Lease()), "a lease has expired")
		},
	},
	{
		what: "NewSession with a lease that does not exist returns a session that is done, and no error",
		holds: func(s *stage) {
			made, err := s.newSession(s.cli, options{lease: 12345})
			s.check(err == nil, "error %v", err)
			s.check(ended(made.Done(), s.soon), "it is not done")
			s.check(made.Ctx().Err() != nil, "its context lives")
			err = s.newElection(made, s.name).Campaign(s.within(patience), "v")
			s.check(is(err, rpctypes.ErrLeaseNotFound), "a campaign returns %v", err)
			s.check(is(made.Close(), rpctypes.ErrLeaseNotFound), "Close returns something else")
		},
	},
	{
		what: "NewSession ends with its context if etcd does not answer",
		holds: func(s *stage) {
			nobody, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
			s.valid(err)
			s.Cleanup(func() { _ = nobody.Close() })
			_, err = s.newSession(nobody, options{ctx: s.within(300 * time.Millisecond)})
			s.check(errors.Is(err, context.DeadlineExceeded), "error %v", err)
		},
	},
	{
		what: "Orphan closes Done at once and lets the lease expire",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "v")
			begin := time.Now()
			made.Orphan()
			s.check(isDone(made.Done()) || ended(made.Done(), s.soon), "Done is open")
			s.check(time.Since(begin) < s.soon, "it took %v", time.Since(begin))
			s.check(ended(made.Ctx().Done(), s.soon), "the context lives")
			s.check(s.alive(made.Lease()) && s.has(s.keyOf(made)), "the lease is gone")
			made.Orphan()
		},
	},
	{
		what: "Close revokes the lease, and returns an error if it does not exist",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "v")
			s.check(made.Close() == nil, "error")
			s.check(isDone(made.Done()) || ended(made.Done(), s.soon), "Done is open")
			s.check(!s.has(s.keyOf(made)) && !s.alive(made.Lease()), "the lease lives")
			s.check(is(made.Close(), rpctypes.ErrLeaseNotFound), "the second Close says something else")
		},
	},
	{
		what: "a session ends with the context of WithContext, whose values its own has; the lease is left to expire",
		holds: func(s *stage) {
			ctx, cancel := context.WithCancel(context.WithValue(s.ctx, contextKey{}, "value"))
			made := s.session(options{ctx: ctx})
			s.check(made.Ctx().Err() == nil, "it has ended")
			s.check(made.Ctx().Value(contextKey{}) == "value", "its context has no values")
			cancel()
			s.check(made.Ctx().Err() != nil, "its context lives on")
			s.check(ended(made.Done(), s.soon), "it lives on")
			s.check(s.alive(made.Lease()), "the lease was revoked")
			s.check(errors.Is(made.Close(), context.Canceled), "Close could revoke it")
			s.check(s.alive(made.Lease()), "the lease was revoked")
			_, err := s.newSession(s.cli, options{ctx: ctx})
			s.check(errors.Is(err, context.Canceled), "a new one returns %v", err)
		},
	},
	{
		what: "with WithContext, a client that consists of a KV, a Watcher and a Lease is enough",
		holds: func(s *stage) {
			parts := &clientv3.Client{KV: s.cli.KV, Watcher: s.cli.Watcher, Lease: s.cli.Lease}
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			one, other := s.sessionOn(parts, options{ctx: ctx}), s.sessionOn(parts, options{ctx: ctx})
			first, second := s.newElection(one, s.name), s.newElection(other, s.name)
			s.lead(first, "one")
			campaign := s.queue(s.ctx, other, second, "two")
			values := second.Observe(ctx)
			s.check(s.value(values) == "one", "another value is observed")
			s.valid(first.Proclaim(s.ctx, "three"))
			leader, err := second.Leader(s.ctx)
			s.check(err == nil && string(leader.Kvs[0].Value) == "three", "the leader is %v, %v", leader, err)
			s.valid(first.Resign(s.ctx))
			s.check(<-campaign == nil, "the second one does not lead")
			s.until(values, "two")

			m := s.newMutex(one, s.name+"-mutex")
			s.valid(m.Lock(s.ctx))
			s.check(is(s.newMutex(other, s.name+"-mutex").TryLock(s.ctx), s.errLocked), "two have the mutex")
			s.valid(m.Unlock(s.ctx))
			s.check(other.Close() == nil && ended(other.Done(), s.soon), "it does not close")
			cancel()
			s.check(ended(one.Done(), s.soon), "it lives on")
		},
	},
	{
		what: "a session ends with its client",
		holds: func(s *stage) {
			cli, err := s.cluster.Dial()
			s.valid(err)
			made := s.sessionOn(cli, options{})
			s.valid(cli.Close())
			s.check(ended(made.Done(), s.soon), "it lives on")
		},
	},
	{
		what: "a session whose lease is revoked by hand is done by the next renewal",
		holds: func(s *stage) {
			made := s.session(seconds(9))
			_, err := s.cli.Revoke(s.ctx, made.Lease())
			s.valid(err)
			s.check(ended(made.Done(), s.soon), "it lives on")
			s.check(made.Ctx().Err() != nil || ended(made.Ctx().Done(), s.soon), "its context lives on")
		},
	},
	{
		what:   "Done is closed before etcd expires the lease",
		theirs: "the key was deleted first",
		holds: func(s *stage) {
			// Replies are late: etcd counts a renewal from its sending, and etcd's client package
			// from the receipt of its reply. The TTL is long enough for a renewal with such a reply,
			// and they are late enough to distinguish, on a busy machine, which of the two ends is
			// first.
			const late = 2 * time.Second
			host := s.cluster.Host(s.T)
			made := s.sessionOn(host.Client(s.T), seconds(9))
			e := s.newElection(made, s.name)
			s.lead(e, "v")
			watch, stop := context.WithCancel(s.ctx)
			defer stop()
			gone := s.cli.Watch(watch, e.Key(), clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
			<-gone
			host.Delay(0, late)
			defer host.Mend()
			time.Sleep(6500 * time.Millisecond) // for a renewal with such a reply
			s.check(!isDone(made.Done()), "slow replies have ended it")
			host.Cut()
			_, ok := comes(gone, patience)
			first := isDone(made.Done())
			s.check(ok, "the lease did not expire")
			s.check(first, "the key was deleted first")
		},
	},
}
