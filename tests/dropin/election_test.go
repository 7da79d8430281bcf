package dropin

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// electionRows are the basic behaviours of elections.
var electionRows = []behaviour{
	{
		what: "a campaign alone is won; Key, Rev and Header are those of the key and of etcd's answer",
		holds: func(s *stage) {
			made, e := s.election()
			s.check(e.Key() == "" && e.Rev() == 0 && e.Header() == nil, "it has a key before")
			s.check(e.Campaign(s.ctx, "value") == nil, "error")
			s.check(e.Key() == fmt.Sprintf("%s/%x", s.name, made.Lease()), "its key is %q", e.Key())
			resp, err := s.cli.Get(s.ctx, e.Key())
			s.valid(err)
			s.check(len(resp.Kvs) == 1 && string(resp.Kvs[0].Value) == "value", "another value")
			s.check(resp.Kvs[0].Lease == int64(made.Lease()), "another lease")
			s.check(resp.Kvs[0].CreateRevision == e.Rev(), "Rev is %d", e.Rev())
			h := e.Header()
			s.check(h.GetRevision() == e.Rev(), "the header's revision is %d", h.GetRevision())
			s.check(h.GetClusterId() == resp.Header.ClusterId && h.GetMemberId() == resp.Header.MemberId && h.GetRaftTerm() == resp.Header.RaftTerm,
				"the header is none of etcd's: %v", h)
		},
	},
	{
		what: "campaigns are won in the order of their keys, one at a time, when the older keys are deleted",
		holds: func(s *stage) {
			var won []<-chan error
			var es []election
			for i := range 4 {
				made, e := s.election()
				es = append(es, e)
				won = append(won, s.queue(s.ctx, made, e, fmt.Sprint(i)))
			}
			last := int64(0)
			for i, e := range es {
				err, ok := comes(won[i], patience)
				s.check(ok && err == nil, "number %d did not win: %v", i, err)
				s.check(e.Rev() > last, "tokens do not grow")
				last = e.Rev()
				time.Sleep(20 * time.Millisecond) // time for a second one to win, if that were possible
				for j := i + 1; j < len(es); j++ {
					s.check(len(won[j]) == 0, "number %d leads beside number %d", j, i)
				}
				s.check(e.Resign(s.ctx) == nil, "error")
			}
			s.check(len(s.line()) == 0, "keys are left: %v", s.line())
		},
	},
	{
		what: "a campaign whose context ends returns that error, unwrapped, and its key is deleted",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			for wanted, ctx := range map[error]func() (context.Context, context.CancelFunc){
				context.Canceled:         func() (context.Context, context.CancelFunc) { return context.WithCancel(s.ctx) },
				context.DeadlineExceeded: func() (context.Context, context.CancelFunc) { return context.WithTimeout(s.ctx, 5*time.Second) }, // it waits before that
			} {
				var rec etcdtest.Recorder
				made := s.sessionOn(s.cluster.Client(s.T, rec.Attach), options{})
				e := s.newElection(made, s.name)
				ctx, cancel := ctx()
				result := s.queue(ctx, made, e, "v")
				if is(wanted, context.Canceled) {
					s.waits(&rec, leader.Key())
					cancel()
				}
				err, ok := comes(result, patience)
				cancel()
				s.check(ok && is(err, wanted), "it returns %v", err)
				s.check(len(s.line()) == 1, "its key is there")
				s.check(e.Key() == "", "it has a key")
			}
		},
	},
	{
		what: "if session and campaign have one context, its end deletes the key as well",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			for range 3 {
				var rec etcdtest.Recorder
				ctx, cancel := context.WithCancel(s.ctx)
				made := s.sessionOn(s.cluster.Client(s.T, rec.Attach), options{ctx: ctx})
				e := s.newElection(made, s.name)
				result := s.queue(ctx, made, e, "v")
				s.waits(&rec, leader.Key())
				cancel()
				err, ok := comes(result, patience)
				s.check(ok && is(err, context.Canceled), "it returns %v", err)
				s.check(len(s.line()) == 1, "its key is there")
			}
		},
	},
	{
		what: "a second campaign of a session is a proclaim, by the same election or another one of the prefix",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "one")
			rev := e.Rev()
			s.check(e.Campaign(s.within(patience), "two") == nil, "error")
			other := s.newElection(made, s.name)
			s.check(other.Campaign(s.within(patience), "three") == nil, "error")
			s.check(other.Rev() == rev && e.Rev() == rev && other.Key() == e.Key(), "another key")
			resp, err := e.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "three" && resp.Kvs[0].Version == 3, "not proclaimed")
			s.check(e.Resign(s.ctx) == nil && len(s.line()) == 0, "not resigned")
			s.check(is(other.Proclaim(s.ctx, "four"), s.errNotLeader), "the other one leads still")
		},
	},
	{
		what: "Proclaim replaces the value and keeps the token; without leadership it is ErrElectionNotLeader",
		holds: func(s *stage) {
			_, e := s.election()
			s.check(is(e.Proclaim(s.ctx, "early"), s.errNotLeader), "before the campaign it returns something else")
			s.lead(e, "one")
			rev := e.Rev()
			s.check(e.Proclaim(s.ctx, "\x00\xff") == nil, "error")
			resp, err := e.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "\x00\xff", "another value")
			s.check(e.Rev() == rev && e.Header().GetRevision() == resp.Kvs[0].ModRevision, "the header is of something else")
			s.check(e.Resign(s.ctx) == nil, "error")
			s.check(e.Key() == "" && e.Header().GetRevision() > resp.Kvs[0].ModRevision, "the header is not that of the resignation")
			s.check(is(e.Proclaim(s.ctx, "late"), s.errNotLeader), "after the resignation it returns something else")
		},
	},
	{
		what: "Resign hands over; there is nothing to resign twice, or without a campaign",
		holds: func(s *stage) {
			_, e := s.election()
			s.check(e.Resign(s.ctx) == nil, "error before the campaign")
			s.lead(e, "one")
			made, next := s.election()
			won := s.queue(s.ctx, made, next, "two")
			s.check(e.Resign(s.ctx) == nil, "error")
			err, ok := comes(won, s.soon)
			s.check(ok && err == nil, "the next one did not win: %v", err)
			s.check(e.Resign(s.ctx) == nil, "error the second time")
			s.check(next.Proclaim(s.ctx, "still") == nil, "the second resignation took the successor's key")
			s.check(e.Campaign(s.within(300*time.Millisecond), "again") != nil, "it leads beside the other")
		},
	},
	{
		what: "Leader returns the leader's key, and ErrElectionNoLeader if there is no candidate",
		holds: func(s *stage) {
			made, e := s.election()
			_, err := e.Leader(s.ctx)
			s.check(is(err, s.errNoLeader), "it returns %v", err)
			s.lead(e, "value")
			second, waiter := s.election()
			s.queue(s.within(patience), second, waiter, "waiter")
			resp, err := waiter.Leader(s.ctx)
			s.check(err == nil && len(resp.Kvs) == 1 && string(resp.Kvs[0].Key) == s.keyOf(made), "another leader")
			s.check(resp.Header.GetClusterId() != 0 && resp.Header.GetRevision() >= e.Rev(), "the header is none of etcd's")
			s.check(resp.Kvs[0].Lease == int64(made.Lease()) && resp.Kvs[0].Version == 1, "not the whole key-value")
			cancelled, cancel := context.WithCancel(s.ctx)
			cancel()
			_, err = e.Leader(cancelled)
			s.check(is(err, context.Canceled), "under a dead context it returns %v", err)
		},
	},
	{
		what: "an orphaned session can campaign, lead and resign, as long as its lease lives",
		holds: func(s *stage) {
			made, e := s.election()
			made.Orphan()
			s.check(e.Campaign(s.within(patience), "orphan") == nil, "error")
			s.check(e.Proclaim(s.ctx, "again") == nil, "error")
			second, other := s.election()
			second.Orphan()
			won := s.queue(s.ctx, second, other, "second orphan")
			s.check(e.Resign(s.ctx) == nil, "error")
			err, ok := comes(won, s.soon)
			s.check(ok && err == nil, "the waiting orphan did not win: %v", err)
			s.check(other.Resign(s.ctx) == nil && len(s.line()) == 0, "keys are left")
		},
	},
	{
		what: "a campaign continues to wait when its session is orphaned",
		holds: func(s *stage) {
			_, leader := s.election()
			s.lead(leader, "leader")
			made, e := s.election()
			won := s.queue(s.ctx, made, e, "waiter")
			made.Orphan()
			time.Sleep(while)
			s.check(len(won) == 0, "it has returned")
			s.check(leader.Resign(s.ctx) == nil, "error")
			err, ok := comes(won, s.soon)
			s.check(ok && err == nil, "it did not win: %v", err)
		},
	},
	{
		what: "ResumeElection takes over a leadership: its key, token, Proclaim and Resign",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "one")
			made.Orphan()
			heir := s.session(options{lease: made.Lease()})
			r := s.resumeElection(heir, s.name, e.Key(), e.Rev())
			s.check(r.Key() == e.Key() && r.Rev() == e.Rev(), "another key")
			s.check(r.Proclaim(s.ctx, "two") == nil, "error")
			second, next := s.election()
			won := s.queue(s.ctx, second, next, "next")
			s.check(r.Resign(s.ctx) == nil, "error")
			err, ok := comes(won, s.soon)
			s.check(ok && err == nil, "the next one did not win: %v", err)
			stale := s.resumeElection(heir, s.name, e.Key(), e.Rev())
			s.check(is(stale.Proclaim(s.ctx, "three"), s.errNotLeader), "a leadership of the past was resumed")
		},
	},
	{
		what: "a transaction of the STM commits",
		holds: func(s *stage) {
			from, to := s.name+"-from", s.name+"-to"
			_, err := s.cli.Put(s.ctx, from, "ab")
			s.valid(err)
			s.check(s.transfer(s.ctx, s.cli, from, to) == nil, "error")
			resp, err := s.cli.Get(s.ctx, s.name+"-", clientv3.WithPrefix())
			s.valid(err)
			s.check(len(resp.Kvs) == 2 && string(resp.Kvs[0].Value) == "b" && string(resp.Kvs[1].Value) == "a", "another result")
		},
	},
}
