package lease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// threeMembers answer for each other, but one that swallows what it gets. Which of them a
// request goes to is drawn: where much else goes through the same client, what its rotation
// gives to whom has no order.
type threeMembers struct {
	*server
	draw *rand.Rand
}

func (m *threeMembers) swallows(ctx context.Context) error {
	m.mu.Lock()
	swallows := m.draw.IntN(3) == 0
	m.mu.Unlock()
	if swallows {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *threeMembers) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := m.swallows(ctx); err != nil {
		return nil, err
	}
	return &clientv3.LeaseKeepAliveResponse{ResponseHeader: &etcdserverpb.ResponseHeader{RaftTerm: 7}, ID: id, TTL: 10}, nil
}

func (m *threeMembers) MemberList(ctx context.Context, _ ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if err := m.swallows(ctx); err != nil {
		return nil, err
	}
	return &clientv3.MemberListResponse{Header: &etcdserverpb.ResponseHeader{RaftTerm: 7}}, nil
}

// One member of three that swallows everything, for five minutes, costs nobody the lease,
// however the requests meet it.
//
// Broken by putting each request once, with the whole of its time-out: 54 of the 100
// sessions are lost then.
func TestOneMemberOfThreeThatSwallows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sessions []*lease.Session
		for seed := range uint64(100) {
			s := &threeMembers{server: newServer(), draw: rand.New(rand.NewPCG(seed, 0))}
			s.grant, s.revoke = []reply{ok(10)}, []reply{ok(0)}
			cfg := s.config(10 * time.Second)
			cfg.Lease = way(s)
			sessions = append(sessions, open(t, cfg))
		}
		time.Sleep(5 * time.Minute)
		lost := 0
		for _, s := range sessions {
			if s.Err() != nil {
				lost++
			}
			s.Abandon()
		}
		require.LessOrEqual(t, lost, 3)
	})
}

// A request that is not answered is put once more when half of its time is over, and not
// by a process that wakes up after its deadline: it would prolong a lease that it no
// longer counts on.
func TestNothingIsPutAgainAfterTheDeadline(t *testing.T) {
	for name, asleep := range map[string]time.Duration{"awake": 0, "asleep": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := etcdtest.NewClock()
				s := newServer()
				s.grant, s.renew, s.revoke = []reply{ok(12)}, []reply{hole}, []reply{ok(0)}
				cfg := s.config(12 * time.Second)
				cfg.Clock = clock
				cfg.Renewal = func(time.Duration) lease.Renewal {
					return lease.Renewal{Every: time.Second, Timeout: time.Second}
				}
				session := open(t, cfg)
				time.Sleep(1400 * time.Millisecond) // sent once, from 0.9 s to 1 s on
				synctest.Wait()
				require.Len(t, s.requests("renew"), 1)
				clock.Jump(asleep)
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				if asleep > 0 {
					require.Len(t, s.requests("renew"), 1)
					require.Error(t, session.Err())
				} else {
					require.Len(t, s.requests("renew"), 2)
				}
				session.Abandon()
			})
		})
	}
}
