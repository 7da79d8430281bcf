package interop

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// dial connects to the gRPC API of etcd.
func dial(t *testing.T, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(endpoint, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// v3election joins with a Campaign of the service. A client of the service keeps its lease alive by
// itself.
func v3election(t *testing.T, s *stage, value string) *contender {
	t.Helper()
	ctx, leave := context.WithCancel(etcdtest.Context(t))
	t.Cleanup(leave)
	alive, die := context.WithCancel(etcdtest.Context(t))
	lease, err := s.cli.Grant(ctx, int64(electiontest.Quiet.Seconds()))
	require.NoError(t, err)
	renewals, err := s.cli.KeepAlive(alive, lease.ID)
	require.NoError(t, err)
	var reader sync.WaitGroup
	reader.Go(func() {
		for range renewals { // they must be read
		}
	})
	t.Cleanup(func() {
		die()
		reader.Wait()
	})

	c := &contender{leave: leave, die: die}
	var leader *v3electionpb.LeaderKey
	c.won = etcdtest.Go(func() win {
		answer, err := s.service.Campaign(ctx, &v3electionpb.CampaignRequest{Name: []byte(s.name), Lease: int64(lease.ID), Value: []byte(value)})
		leader = answer.GetLeader()
		return win{key: string(leader.GetKey()), token: eldest.Token(leader.GetRev()), err: err}
	})
	c.key = s.registered(t, value)
	c.proclaim = func(value string) error {
		_, err := s.service.Proclaim(etcdtest.Context(t), &v3electionpb.ProclaimRequest{Leader: leader, Value: []byte(value)})
		return err
	}
	c.resign = func() error {
		_, err := s.service.Resign(etcdtest.Context(t), &v3electionpb.ResignRequest{Leader: leader})
		return err
	}
	return c
}

// concurrent joins with etcd's own Go package. Its session keeps the lease alive.
func concurrent(t *testing.T, s *stage, value string) *contender {
	t.Helper()
	session, err := concurrency.NewSession(s.cli, concurrency.WithTTL(int(electiontest.Quiet.Seconds())))
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	e := concurrency.NewElection(session, s.name)
	ctx, leave := context.WithCancel(etcdtest.Context(t))
	t.Cleanup(leave)
	c := &contender{key: keys.Candidate(s.name, int64(session.Lease())), leave: leave, die: session.Orphan}
	c.won = etcdtest.Go(func() win {
		err := e.Campaign(ctx, value)
		return win{key: e.Key(), token: eldest.Token(e.Rev()), err: err}
	})
	require.Equal(t, c.key, s.registered(t, value), "the layouts differ")
	c.proclaim = func(value string) error { return e.Proclaim(etcdtest.Context(t), value) }
	c.resign = func() error { return e.Resign(etcdtest.Context(t)) }
	return c
}
