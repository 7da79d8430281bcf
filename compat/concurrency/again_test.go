package concurrency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A leader campaigns again. The header is that of the last response, and not that of the
// registration, which is older than the proclaim's.
func TestHeaderOfAFurtherCampaign(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	s := session(t, etcdtest.Shared(t).Client(t))
	e, other := concurrency.NewElection(s, t.Name()), concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(ctx, "one"))
	require.NoError(t, e.Proclaim(ctx, "two"))
	for _, next := range []struct {
		of    *concurrency.Election
		value string
	}{{e, "three"}, {other, "four"}, {e, "four"}} {
		before := e.Header().GetRevision()
		require.NoError(t, next.of.Campaign(ctx, next.value))
		resp, err := e.Leader(ctx)
		require.NoError(t, err)
		require.Equal(t, next.value, string(resp.Kvs[0].Value))
		require.GreaterOrEqual(t, next.of.Header().GetRevision(), before)
		require.GreaterOrEqual(t, next.of.Header().GetRevision(), resp.Kvs[0].ModRevision)
	}
}

// A leader of ResumeElection, which has proclaimed, campaigns: with any value, also the empty one,
// and with a header.
//
// The test fails if the key counts as one that the candidate has registered.
func TestResumedLeaderCampaigns(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"empty": "", "the same": "two", "another": "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli := etcdtest.Shared(t).Client(t)
			ctx := etcdtest.Context(t)
			first := session(t, cli)
			e := concurrency.NewElection(first, t.Name())
			require.NoError(t, e.Campaign(ctx, "one"))
			first.Orphan()
			r := concurrency.ResumeElection(session(t, cli, concurrency.WithLease(first.Lease())), t.Name(), e.Key(), e.Rev())
			require.NoError(t, r.Proclaim(ctx, "two"))
			proclaimed := r.Header().GetRevision()
			require.NoError(t, r.Campaign(ctx, value))
			require.Equal(t, e.Rev(), r.Rev())
			require.GreaterOrEqual(t, r.Header().GetRevision(), proclaimed)
			resp, err := r.Leader(ctx)
			require.NoError(t, err)
			require.Equal(t, value, string(resp.Kvs[0].Value), "the value was not proclaimed")
		})
	}
}
