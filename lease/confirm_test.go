package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// members is a lease server whose replies have a Raft term, and the majority that confirms them.
type members struct {
	*server
	term    uint64 // of the replies to renewals
	answers []majorityAnswer
	asked   atomic.Int32
}

type majorityAnswer func(ctx context.Context) (term uint64, err error)

func (m *members) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	resp, err := m.server.KeepAliveOnce(ctx, id)
	if err == nil {
		resp.ResponseHeader = &etcdserverpb.ResponseHeader{RaftTerm: m.term}
	}
	return resp, err
}

func (m *members) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if len(opts) > 0 {
		panic("a majority is asked without options: one of them is not to ask it")
	}
	n := int(m.asked.Add(1))
	term, err := m.answers[min(n, len(m.answers))-1](ctx)
	if err != nil {
		return nil, err
	}
	return &clientv3.MemberListResponse{Header: &etcdserverpb.ResponseHeader{RaftTerm: term}}, nil
}

func isTerm(term uint64) majorityAnswer {
	return func(context.Context) (uint64, error) { return term, nil }
}

func majorityFails(context.Context) (uint64, error) { return 0, errors.New("no quorum") }

func majorityHangs(ctx context.Context) (uint64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestRenewalsNeedAMajority: a renewal prolongs the session if and only if the majority has no
// later term than the reply.
func TestRenewalsNeedAMajority(t *testing.T) {
	for name, tc := range map[string]struct {
		term    uint64
		answers []majorityAnswer
		lives   bool
		asked   int32 // at least
	}{
		"the same term":                      {7, []majorityAnswer{isTerm(7)}, true, 1},
		"an older term, of one that lags":    {7, []majorityAnswer{isTerm(6)}, true, 1},
		"a later term, for good":             {7, []majorityAnswer{isTerm(8)}, false, 2},
		"no majority":                        {7, []majorityAnswer{majorityFails}, false, 4},
		"a majority at the second attempt":   {7, []majorityAnswer{majorityFails, isTerm(7)}, true, 2},
		"one that swallows, then a majority": {7, []majorityAnswer{majorityHangs, isTerm(7)}, true, 2},
		"nothing but silence":                {7, []majorityAnswer{majorityHangs}, false, 2},
		"replies without a term":             {0, []majorityAnswer{isTerm(8)}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &members{server: newServer(), term: tc.term, answers: tc.answers}
				cfg := s.config(10 * time.Second)
				cfg.Lease = way(s)
				session := open(t, cfg)
				time.Sleep(8999 * time.Millisecond)
				synctest.Wait()
				require.True(t, session.Holds(0), "lost before the deadline of the grant")
				time.Sleep(time.Millisecond)
				synctest.Wait()
				require.Equal(t, tc.lives, session.Holds(0), "after the deadline of the grant")
				require.GreaterOrEqual(t, s.asked.Load(), tc.asked)
				if tc.asked == 0 {
					require.Zero(t, s.asked.Load())
				}
				require.NotEmpty(t, s.requests("renew"))
				require.NoError(t, session.Close(t.Context()))
			})
		})
	}
}

// A lease is not resumed if only a member that a majority has replaced confirms it.
func TestResumeNeedsAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &members{server: newServer(), term: 7, answers: []majorityAnswer{isTerm(8)}}
		cfg := s.config(10 * time.Second)
		cfg.Lease = way(s)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second+time.Millisecond) // between two attempts, which are 100 ms apart
		defer cancel()
		require.ErrorContains(t, etcdtest.Err(lease.Resume(ctx, cfg, leaseID)), "its Raft term is 7, the majority's 8")
	})
}

// A lease that cannot list etcd's members is refused before anything is sent, unless the caller
// sets a Majority or Unconfirmed.
func TestConfirmationIsRequired(t *testing.T) {
	s := newServer()
	parts := clientv3.NewCtxClient(t.Context())
	parts.Lease = s
	namespaced := namespace.NewLease(s, "teams/a/")
	for name, cfg := range map[string]lease.Config{
		"a namespaced lease":                  {Lease: namespaced},
		"a client put together from parts":    {Lease: parts},
		"a majority put together from parts":  {Lease: namespaced, Majority: parts},
		"a majority that is no client at all": {Lease: namespaced, Majority: (*clientv3.Client)(nil)},
		"a majority that is the same client":  {Lease: parts, Majority: parts},
	} {
		t.Run(name, func(t *testing.T) {
			for _, begin := range []func() (*lease.Session, error){
				func() (*lease.Session, error) { return lease.Open(t.Context(), cfg) },
				func() (*lease.Session, error) { return lease.Resume(t.Context(), cfg, leaseID) },
			} {
				session, err := begin()
				if err == nil {
					session.Abandon()
				}
				require.ErrorIs(t, err, eldest.ErrInvalid, "nobody confirms its renewals")
				require.ErrorContains(t, err, fmt.Sprintf("%T", cfg.Lease))
				require.ErrorContains(t, err, "set Config.Majority to the client that clientv3.New returned, or to lease.Unconfirmed{}")
			}
			require.Empty(t, s.sent)
		})
	}
}

// Renewals count without a majority if the caller sets Unconfirmed, whatever the Raft term of a
// reply.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &members{server: newServer(), term: 7}
		cfg := s.config(10 * time.Second)
		cfg.Lease, cfg.Majority = way(s), lease.Unconfirmed{}
		session := open(t, cfg)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.True(t, session.Holds(0))
		require.Zero(t, s.asked.Load())
		require.NoError(t, session.Close(t.Context()))
	})
}

// listing counts how often etcd's members are listed.
type listing struct {
	lease.Majority
	asked atomic.Int32
}

func (l *listing) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	l.asked.Add(1)
	return l.Majority.MemberList(ctx, opts...)
}

// Each renewal of a namespaced lease is confirmed by the client behind it.
func TestNamespacedLeaseIsConfirmed(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	members := &listing{Majority: cli}
	type renewal struct{ renewed, asked int32 }
	renewals, n := make(chan renewal, 100), int32(0)
	cfg := lease.Config{Lease: namespace.NewLease(cli, "teams/a/"), Majority: members, Options: lease.Options{TTL: time.Hour, Renewal: often}}
	cfg.Hooks.Renewed = func(lease.RenewedEvent) {
		n++
		renewals <- renewal{n, members.asked.Load()}
	}
	s, err := lease.Open(etcdtest.Context(t), cfg)
	require.NoError(t, err)
	for range 3 {
		select {
		case r := <-renewals:
			require.GreaterOrEqual(t, r.asked, r.renewed, "a renewal counts that no majority has confirmed")
		case <-time.After(etcdtest.Patience):
			t.Fatal("it is not renewed")
		}
	}
	require.NoError(t, s.Close(etcdtest.Context(t)))
}

// overtaken is a client that counts the replies to renewals from before an etcd leader that has
// already been elected.
type overtaken struct {
	*clientv3.Client
	elected atomic.Uint64 // term of the successor
	stale   atomic.Int32
}

func (o *overtaken) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	elected := o.elected.Load()
	resp, err := o.Client.KeepAliveOnce(ctx, id)
	if err == nil && resp.RaftTerm < elected {
		o.stale.Add(1)
	}
	return resp, err
}

// TestRenewedByAnEtcdLeaderThatWasStopped: etcd's leader is stopped, replaced, and continues; the
// session's client uses only that member, and is partitioned from it at the next confirmed renewal.
// The session must end before the successor lets the lease expire. Without the confirmation by the
// majority it outlives the lease by half a second (G3).
func TestRenewedByAnEtcdLeaderThatWasStopped(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	everybody := c.Client(t)
	var stale int32
	// Most rounds have a stale renewal; few do on a machine so busy that the session ends before
	// the others have elected a leader.
	begun := time.Now()
	for round := 0; stale == 0 && time.Since(begun) < 2*etcdtest.Patience; round++ {
		stopped, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
		host := c.Host(t, stopped)
		client := &overtaken{Client: host.Client(t)}
		resumed := make(chan struct{})
		var session *lease.Session
		cfg := lease.Config{Lease: client, Options: lease.Options{TTL: ttl}}
		cfg.Hooks.Renewed = func(lease.RenewedEvent) {
			select {
			case <-resumed:
				host.Cut()
			default:
			}
		}
		session, err = lease.Open(etcdtest.Context(t), cfg)
		require.NoError(t, err)
		key, lives := bound(t, everybody, session)
		if !lives { // the machine was so busy that the session has ended already
			session.Abandon()
			continue
		}
		gone := everybody.Watch(etcdtest.Context(t), key, clientv3.WithFilterPut())

		require.NoError(t, c.Member(stopped).Stop())
		client.elected.Store(successorsTerm(t, c, stopped))
		require.Eventually(t, func() bool { return session.Status().Remaining < ttl/4 }, etcdtest.Patience, time.Millisecond)
		close(resumed)
		require.NoError(t, c.Member(stopped).Cont())

		for resp := range gone {
			if len(resp.Events) > 0 { // not a message of the client itself
				break
			}
		}
		held := session.Holds(0)
		require.False(t, held, "the session outlives its lease (round %d)", round)
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		session.Abandon()
		host.Mend()
		stale += client.stale.Load()
	}
	require.NotZero(t, stale, "INVALID: the stopped leader never answered for its successor")
}

// bound calls put on a cluster that may not have recovered since the last round; lives reports that
// the session, and its lease, have not ended meanwhile.
func bound(t *testing.T, cli *clientv3.Client, s *lease.Session) (key string, lives bool) {
	t.Helper()
	key = fmt.Sprintf("%s/%x", t.Name(), int64(s.ID()))
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := cli.Put(ctx, key, "v", clientv3.WithLease(s.ID()))
		return err == nil || s.Err() != nil
	}, etcdtest.Patience, time.Millisecond)
	return key, s.Err() == nil
}

// successorsTerm waits until the others have elected a leader and returns its term.
func successorsTerm(t *testing.T, c *etcdtest.Cluster, stopped int) (term uint64) {
	t.Helper()
	other := c.ClientTo(t, (stopped+1)%3)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		// A linearizable read, so that the successor answers it.
		resp, err := other.Get(ctx, "x")
		if err == nil {
			term = resp.Header.RaftTerm
		}
		return err == nil
	}, etcdtest.Patience, time.Millisecond)
	return term
}
