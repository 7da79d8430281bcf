package sandbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// The queue is followed when the member at which it is watched, which leads, stops or is partitioned.
func TestQueueIsFollowed(t *testing.T) {
	t.Parallel()
	s := open(t, 3, longTTL)
	key := keys.Candidate("jobs", 7)
	changes := func(op clientv3.Op, want ...string) {
		t.Helper()
		require.NoError(t, s.field.Ask(s.ctx, func(ctx context.Context, client *clientv3.Client) error {
			return etcdtest.Err(client.Do(ctx, op))
		}))
		s.queued(want...)
	}
	cut := func(way etcdtest.Direction) func(int) error {
		return func(member int) error { return s.field.Cut(s.ctx, way, member) }
	}
	stop := func(member int) error { return s.Do(s.ctx, feed.Action{Do: feed.MemberStop, Member: member}) }
	// The watch begins at the first one, and goes on at the next one after each fault.
	for member, fails := range []func(int) error{stop, cut(etcdtest.Outbound), cut(etcdtest.BothWays)} {
		s.do(feed.Action{Do: feed.MoveLeader, Member: member})
		require.NoError(t, fails(member))
		changes(clientv3.OpPut(key, "nobody"), "")
		changes(clientv3.OpDelete(key))
		require.NoError(t, s.field.Mend(member))
		require.NoError(t, s.healMembers(s.ctx))
	}
}
