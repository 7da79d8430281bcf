package inject

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestUntil(t *testing.T) {
	n := 0
	require.NoError(t, Until(t.Context(), "x", func(context.Context) (bool, error) { n++; return n == 3, nil }))
	broken := errors.New("broken")
	require.ErrorIs(t, Until(t.Context(), "x", func(context.Context) (bool, error) { return true, broken }), broken)
	err := Until(within(t, 20*time.Millisecond), "pigs fly", func(context.Context) (bool, error) { return false, broken })
	require.ErrorIs(t, err, ErrNoEffect)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "no evidence that pigs fly")
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, members int) *Field {
	t.Helper()
	f, err := Open(within(t, time.Minute), etcdtest.Config{Members: members})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestCutIsProven(t *testing.T) {
	t.Parallel()
	f, ctx := open(t, 3), within(t, time.Minute)
	require.Same(t, f.Each[0], f.Client())
	require.NoError(t, f.Cut(ctx, etcdtest.BothWays, 0))
	require.NoError(t, Answers(ctx, f.Each[0], false, 500*time.Millisecond))
	require.NoError(t, Answers(ctx, f.Each[1], true, time.Second))
	require.Same(t, f.Each[1], f.Client())
	// Each call begins with another member, so that of calls with time for one member only those fail that ask
	// this one. One with more time then asks the next.
	first := map[*clientv3.Client]bool{}
	for range 3 {
		require.NoError(t, f.Ask(ctx, func(_ context.Context, client *clientv3.Client) error { first[client] = true; return nil }))
	}
	require.Len(t, first, 3)
	for range 3 {
		_, _, err := f.Queue(ctx, "jobs")
		require.NoError(t, err)
	}
	require.NoError(t, f.Mend(0))
	require.NoError(t, Answers(ctx, f.Each[0], true, time.Second))
	require.Same(t, f.Each[0], f.Client())
}

// A partition without effect, a member that answers although it should not, and one that does not
// answer although it should, are found.
func TestNoEffectIsFound(t *testing.T) {
	t.Parallel()
	f := open(t, 1)
	require.ErrorIs(t, f.Cut(within(t, 200*time.Millisecond), etcdtest.BothWays, 0), ErrNoEffect)
	require.Same(t, f.All, f.Client(), "it is cut off from all others")
	// Only requests that leave 900 ms count: few, because on a busy machine one of many may take so long.
	require.ErrorIs(t, Answers(within(t, time.Second), f.All, false, 900*time.Millisecond), ErrNoEffect)
	require.NoError(t, f.Member(0).Stop())
	require.ErrorIs(t, Answers(within(t, 200*time.Millisecond), f.All, true, 100*time.Millisecond), ErrNoEffect)
	err := f.Delete(within(t, 200*time.Millisecond), "key", 2)
	require.ErrorIs(t, err, ErrNoEffect)
	require.ErrorIs(t, err, ErrNoMember)
	require.NoError(t, f.Member(0).Cont())
}

func TestOperations(t *testing.T) {
	t.Parallel()
	f, ctx := open(t, 1), within(t, time.Minute)
	put, err := f.All.Put(ctx, "key", "")
	require.NoError(t, err)
	require.NoError(t, f.Delete(ctx, "key", put.Header.Revision-1), "that one is gone")
	require.Error(t, gone(ctx, f.All, "key", put.Header.Revision))
	require.NoError(t, f.Delete(ctx, "key", put.Header.Revision))
	require.NoError(t, gone(ctx, f.All, "key", put.Header.Revision))

	granted, err := f.All.Grant(ctx, 600)
	require.NoError(t, err)
	put, err = f.All.Put(ctx, "jobs/1", "", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	kvs, revision, err := f.Queue(ctx, "jobs")
	require.NoError(t, err)
	require.Equal(t, put.Header.Revision, revision)
	require.Len(t, kvs, 1)
	for range 2 { // again, as if the answer had been lost
		require.NoError(t, f.Revoke(ctx, int64(granted.ID), "jobs/1", revision))
		require.NoError(t, f.CompactTo(ctx, revision))
	}
	require.Error(t, etcdtest.Err(f.All.Get(ctx, "jobs/1", clientv3.WithRev(revision-1))))
	kvs, _, err = f.Queue(ctx, "jobs")
	require.NoError(t, err)
	require.Empty(t, kvs)
}
