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

	"github.com/eldest-io/eldest/lease"
)

// threeMembers are three members that can replace each other, one of which swallows requests. The
// member of a request is chosen at random: if much other traffic uses the same client, its rotation
// has no order for a single caller.
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

// One member of three that swallows everything, for five minutes, costs no session its lease,
// whichever requests it swallows.
//
// Fails if each request is sent once, with the whole of its time-out: 54 of the 100 sessions are
// lost then.
func TestOneMemberOfThreeThatSwallows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sessions []*lease.Session
		for seed := range uint64(100) {
			s := &threeMembers{server: newServer(), draw: rand.New(rand.NewPCG(seed, 0))}
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
