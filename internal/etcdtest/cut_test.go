package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// serves reports whether a member soon answers a read that needs the majority. On a busy machine
// false proves little.
func serves(cli *clientv3.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := cli.Get(ctx, "k")
	return err == nil
}

// leaderBesides waits for an etcd leader other than member i.
func leaderBesides(t *testing.T, c *etcdtest.Cluster, i int) int {
	t.Helper()
	ctx := etcdtest.Context(t)
	for {
		lead, err := c.Leader(ctx)
		require.NoError(t, err)
		if lead != i {
			return lead
		}
	}
}

// requireServes waits until a member answers a read that needs the majority.
func requireServes(t *testing.T, c *etcdtest.Cluster, i int) {
	t.Helper()
	cli := c.ClientTo(t, i)
	require.Eventually(t, func() bool { return serves(cli) }, etcdtest.Patience, time.Millisecond)
}

// requireHeld waits until the cut of member i has held something back.
func requireHeld(t *testing.T, c *etcdtest.Cluster, i int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := c.Held(i)
		return err == nil && n > 0
	}, etcdtest.Patience, 5*time.Millisecond)
}

func TestCutLeaderAndMend(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	lead, err := c.Leader(etcdtest.Context(t))
	require.NoError(t, err)
	held, err := c.Held(lead)
	require.NoError(t, err)
	require.Zero(t, held)

	require.NoError(t, c.Cut(lead))
	next := leaderBesides(t, c, lead)
	requireHeld(t, c, lead)
	require.False(t, serves(c.ClientTo(t, lead)))
	requireServes(t, c, next)

	require.NoError(t, c.Mend(lead))
	requireServes(t, c, lead)
}

func TestCutOneWay(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]etcdtest.Direction{"inbound": etcdtest.Inbound, "outbound": etcdtest.Outbound} {
		t.Run(name, func(t *testing.T) {
			c := etcdtest.Start(t, etcdtest.Config{Members: 3})
			lead, err := c.Leader(etcdtest.Context(t))
			require.NoError(t, err)
			// A leader whose messages do not arrive is replaced; a leader that receives no replies
			// notices it and steps down.
			require.NoError(t, c.CutOneWay(lead, d))
			leaderBesides(t, c, lead)
			requireHeld(t, c, lead)
			require.False(t, serves(c.ClientTo(t, lead)))
			require.NoError(t, c.Mend(lead))
			requireServes(t, c, lead)
		})
	}
}

// The renewal of a lease that a follower forwards to its leader must not bypass the partition. The
// election timeout is long, so that the follower keeps its leader during the whole test.
func TestCutHoldsForwardedRenewals(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond, Election: 2 * time.Second})
	require.NoError(t, c.MoveLeader(etcdtest.Context(t), 0))
	cli := c.ClientTo(t, 1)
	lease, err := cli.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	_, err = cli.KeepAliveOnce(etcdtest.Context(t), lease.ID)
	require.NoError(t, err)

	require.NoError(t, c.Cut(1))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = cli.KeepAliveOnce(ctx, lease.ID)
	require.Error(t, err, "a renewal got through the cut")

	require.NoError(t, c.Mend(1))
	_, err = cli.KeepAliveOnce(etcdtest.Context(t), lease.ID)
	require.NoError(t, err)
}

func TestCutOutlivesRestart(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	require.NoError(t, c.MoveLeader(etcdtest.Context(t), 0))
	require.NoError(t, c.Cut(1))
	requireServes(t, c, 0)
	requireServes(t, c, 2)
	require.NoError(t, c.Member(1).Kill())
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.ErrorIs(t, c.Member(1).Restart(ctx), context.DeadlineExceeded)
	require.False(t, serves(c.ClientTo(t, 1)))
	require.NoError(t, c.Mend(1))
	requireServes(t, c, 1)
}

// A member is cut before it can send anything: it may be told what is cut only long after it has started.
func TestCutFromTheStart(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	require.NoError(t, c.Cut(1))
	require.NoError(t, c.Member(1).Kill())
	require.NoError(t, c.Member(1).Begin())
	require.False(t, serves(c.ClientTo(t, 1)))
	require.NoError(t, c.Mend(1))
	requireServes(t, c, 1)
}

func TestMoveLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, steady)
	for _, to := range []int{0, 1, 2} {
		require.NoError(t, c.MoveLeader(etcdtest.Context(t), to))
		lead, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
		require.Equal(t, to, lead)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	cli := c.Client(t)
	for range 3 {
		_, err := cli.Put(etcdtest.Context(t), "k", "v")
		require.NoError(t, err)
	}
	rev, err := c.Compact(etcdtest.Context(t))
	require.NoError(t, err)
	resp := <-cli.Watch(etcdtest.Context(t), "k", clientv3.WithRev(2))
	require.Equal(t, rev, resp.CompactRevision)
	require.NoError(t, c.Defragment(etcdtest.Context(t)))
}
