package elector_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func beating(cfg *elector.Config) { cfg.Session.Heartbeat.Timeout = lease.MinHeartbeat }

// While etcd is stopped, the tenure of a node is suspended and its status is Unknown; then it leads
// on in the same round, with the same token. A node that ends is replaced.
//
// The test fails if the round ends with the suspension, or if the other node leads.
func TestSuspendedNodeLeadsOn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	name, cli := etcdtest.Election(t), cluster.Client(t)
	var calls atomic.Int32
	one := run(t, config(name, "one", cli, beating, func(cfg *elector.Config) {
		cfg.Standby = func(context.Context, *elector.Positions) { calls.Add(1) }
	}))
	l := etcdtest.Take(t, one.won, "the win")
	two := run(t, config(name, "two", cli, beating))
	two.follows(t, "one")
	for range 2 {
		require.NoError(t, cluster.Member(0).Stop())
		s, err := one.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Unknown })
		require.NoError(t, err)
		require.ErrorIs(t, s.Reason(), eldest.ErrSuspended)
		time.Sleep(2 * lease.MinHeartbeat)
		require.NoError(t, cluster.Member(0).Cont())
		next := etcdtest.Take(t, one.won, "the tenure that goes on")
		require.Equal(t, l.Token(), next.Token(), "another tenure")
		require.NoError(t, next.Err())
		require.Error(t, l.Err())
	}
	require.EqualValues(t, 1, calls.Load(), "the standby function runs once in a round")
	require.Empty(t, two.won)
	require.Error(t, one.end(t))
	require.Greater(t, etcdtest.Take(t, two.won, "the successor's win").Token(), l.Token())
}

// Elections of a group share the heartbeats, and are suspended and resumed together.
func TestSuspendedGroupLeadsOn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, elections := cluster.Client(t), names(t, 20)
	g := group(t, cli, beating)
	g.run(untilOver, elections...)
	tokens := make(map[string]eldest.Token)
	for range elections {
		l := etcdtest.Take(t, g.won, "a win")
		tokens[l.Election()] = l.Token()
	}
	require.NoError(t, cluster.Member(0).Stop())
	time.Sleep(2 * lease.MinHeartbeat)
	require.NoError(t, cluster.Member(0).Cont())
	for range elections {
		l := etcdtest.Take(t, g.won, "a tenure that goes on")
		require.Equal(t, tokens[l.Election()], l.Token())
	}
}
