package dropin

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// value reads the next value of an observer.
func (s *stage) value(from <-chan *clientv3.GetResponse) string {
	resp, ok := comes(from, s.patience)
	s.check(ok, "no value comes")
	s.check(resp != nil, "the channel is closed")
	s.check(len(resp.Kvs) == 1, "%d keys", len(resp.Kvs))
	s.check(resp.Header.GetRevision() >= resp.Kvs[0].ModRevision, "the header is older than the key")
	s.check(resp.Header.GetClusterId() != 0 && resp.Header.GetMemberId() != 0 && resp.Header.GetRaftTerm() != 0, "the header is none of etcd's")
	s.check(resp.Kvs[0].Lease != 0 && resp.Kvs[0].Version > 0, "not the whole key-value")
	return string(resp.Kvs[0].Value)
}

// until reads values up to the wanted one.
func (s *stage) until(from <-chan *clientv3.GetResponse, wanted string) {
	for s.value(from) != wanted {
	}
}

// watches waits until an observer receives new values: its first value does not prove that it
// watches.
func (s *stage) watches(e election, values <-chan *clientv3.GetResponse) {
	s.eventually(func() bool {
		s.valid(e.Proclaim(s.ctx, "new"))
		_, ok := comes(values, while)
		return ok
	}, "a value")
}

// far makes a leader, and an observer of it that has a network of its own and has received the
// first value.
func (s *stage) far() (host *etcdtest.Host, leader election, values <-chan *clientv3.GetResponse) {
	host = s.cluster.Host(s.T)
	_, leader = s.election()
	s.lead(leader, "one")
	observer := s.newElection(s.sessionOn(host.Client(s.T), options{}), s.name)
	values = observer.Observe(s.ctx)
	s.check(s.value(values) == "one", "another value")
	return host, leader, values
}

// observeRows are about observers.
var observeRows = []behaviour{
	{
		what: "Observe returns the current leader without a further event",
		holds: func(s *stage) {
			_, e := s.election()
			s.lead(e, "present")
			s.check(s.value(e.Observe(s.ctx)) == "present", "another value")
		},
	},
	{
		what: "Observe returns every value that a leader proclaims, in order, to a reader that keeps up",
		holds: func(s *stage) {
			_, e := s.election()
			s.lead(e, "0")
			_, other := s.election()
			values := other.Observe(s.ctx)
			s.check(s.value(values) == "0", "another value")
			for i := 1; i <= 100; i++ {
				s.check(e.Proclaim(s.ctx, fmt.Sprint(i)) == nil, "error")
			}
			for i := 1; i <= 100; i++ {
				v := s.value(values)
				s.check(v == fmt.Sprint(i), "%s in place of %d", v, i)
			}
		},
	},
	{
		what: "Observe waits while no candidate leads, and follows from leader to leader",
		holds: func(s *stage) {
			_, one := s.election()
			second, two := s.election()
			values := one.Observe(s.ctx)
			_, ok := comes(values, while)
			s.check(!ok, "a value without a leader")
			s.lead(one, "one")
			s.check(s.value(values) == "one", "another value")
			won := s.queue(s.ctx, second, two, "two")
			_, ok = comes(values, while)
			s.check(!ok, "a waiter is told of")
			s.valid(one.Resign(s.ctx))
			s.valid(<-won)
			s.check(s.value(values) == "two", "another value")
			s.valid(two.Resign(s.ctx))
			s.lead(one, "three")
			s.until(values, "three")
		},
	},
	{
		what: "Observe's channel is closed when its context ends",
		holds: func(s *stage) {
			_, e := s.election()
			s.lead(e, "v")
			for _, read := range []bool{true, false} {
				ctx, cancel := context.WithCancel(s.ctx)
				values := e.Observe(ctx)
				if read {
					s.check(s.value(values) == "v", "another value")
				}
				cancel()
				closed := func() bool {
					resp, ok := comes(values, s.soon)
					return ok && resp == nil
				}
				over := closed()
				if !over {
					over = closed() // one value may have been on its way
				}
				s.check(over, "it is open")
			}
		},
	},
	{
		what:   "Observe continues after a compaction",
		theirs: "the channel is closed",
		holds: func(s *stage) {
			s.own()
			host, e, values := s.far()
			host.Refuse()
			host.Reset()
			for i := range 10 {
				s.valid(e.Proclaim(s.ctx, fmt.Sprint(i)))
			}
			_, err := s.cluster.Compact(s.ctx)
			s.valid(err)
			s.valid(e.Proclaim(s.ctx, "last"))
			host.Mend()
			s.until(values, "last")
		},
	},
	{
		what: "Observe continues after a partition",
		holds: func(s *stage) {
			host, e, values := s.far()
			s.watches(e, values)
			host.Refuse()
			host.Reset()
			s.valid(e.Proclaim(s.ctx, "two"))
			host.Mend()
			s.until(values, "two")
		},
	},
	{
		what: "Observe continues after a network that dropped everything for a while",
		holds: func(s *stage) {
			host, e, values := s.far()
			s.watches(e, values)
			host.Cut()
			s.valid(e.Proclaim(s.ctx, "two"))
			s.eventually(func() bool { return host.Stats().Dropped.Outbound > 0 }, "the news is dropped")
			host.Mend()
			s.until(values, "two")
		},
	},
	{
		what:   "Observe continues when the member of its watch is stopped",
		theirs: "no value comes",
		holds: func(s *stage) {
			// Slow enough that etcd keeps its leader on a busy machine.
			s.cluster = etcdtest.Start(s.T, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond})
			s.valid(s.cluster.MoveLeader(s.ctx, 1))
			// Like many clients: without keepalives. It gets the other endpoints only after its
			// watch was created on member 0.
			cli := s.cluster.ClientTo(s.T, 0, func(cfg *clientv3.Config) { cfg.DialKeepAliveTime = 0 })
			s.cli = s.cluster.ClientTo(s.T, 1)
			_, e := s.election()
			s.lead(e, "one")
			far := s.newElection(s.sessionOn(cli, options{}), s.name)
			values := far.Observe(s.ctx)
			s.check(s.value(values) == "one", "another value")
			s.watches(e, values)
			cli.SetEndpoints(s.cluster.Endpoints()...)
			s.valid(s.cluster.Member(0).Stop())
			defer func() { s.valid(s.cluster.Member(0).Cont()) }()
			s.valid(e.Proclaim(s.ctx, "three"))
			s.until(values, "three")
		},
	},
}
