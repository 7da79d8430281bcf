package leasetime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/leasetime"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func grant(t *testing.T, client *clientv3.Client, seconds int64) int64 {
	t.Helper()
	lease, err := client.Grant(etcdtest.Context(t), seconds)
	require.NoError(t, err)
	return int64(lease.ID)
}

// over waits until a lease is over.
func over(t *testing.T, client *clientv3.Client, lease int64) {
	t.Helper()
	etcdtest.Eventually(t, func() bool {
		return leasetime.Ask(t.Context(), client, []int64{lease}, func(err error) { t.Log(err) })[lease].TTL < 0
	}, "the lease is not over")
}

func revoke(t *testing.T, client *clientv3.Client, lease int64) {
	t.Helper()
	require.NoError(t, etcdtest.Err(client.Revoke(etcdtest.Context(t), clientv3.LeaseID(lease))))
}

// A lease that ran out has expired, one that was revoked in good time has not, whether it was asked
// for before or not; and of one that nobody asked for in time it is not known.
//
// Fails if a lease that is over counts as expired without an answer from its last second.
func TestEnds(t *testing.T) {
	client := etcdtest.Shared(t).Client(t)
	tracker := leasetime.Track(client)
	defer tracker.Close()
	end := func(lease int64) leasetime.End {
		return tracker.Ends(t.Context(), []int64{lease}, time.Now())[lease]
	}

	// ask is end of a lease that lives. On a busy machine etcd may not answer in time.
	ask := func(lease int64) (how leasetime.End) {
		etcdtest.Eventually(t, func() bool { how = end(lease); return how != leasetime.Unclear }, "an answer")
		return how
	}

	revoked, lives := grant(t, client, 300), grant(t, client, 300)
	tracker.Add([]int64{revoked, lives})
	require.Equal(t, leasetime.NotExpired, ask(lives), "its key was deleted")
	require.Equal(t, leasetime.NotExpired, ask(grant(t, client, 300)), "never tracked")

	// On a busy machine the last answer may be too old.
	for attempt := 0; ; attempt++ {
		short := grant(t, client, 2)
		tracker.Add([]int64{short})
		over(t, client, short)
		how := end(short)
		if how == leasetime.Expired {
			break
		}
		require.Equal(t, leasetime.Unclear, how)
		require.Less(t, attempt, 10)
	}

	// By now the tracker has asked for the other one.
	revoke(t, client, revoked)
	require.Equal(t, leasetime.NotExpired, end(revoked))
	forgotten := grant(t, client, 300)
	revoke(t, client, forgotten)
	require.Equal(t, leasetime.Unclear, end(forgotten))
	require.Equal(t, leasetime.Unclear, end(forgotten), "not tracked any more")
}
