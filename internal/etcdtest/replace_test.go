package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The new member has the old one's place and the others' data, and it is a voter: with it, and
// without one of the old ones, there is a majority.
func TestReplace(t *testing.T) {
	t.Parallel()
	cfg := steady
	cfg.Replaceable = true
	c := etcdtest.Start(t, cfg)
	ctx := etcdtest.Context(t)
	_, err := c.Client(t).Put(ctx, "k", "v")
	require.NoError(t, err)
	before := c.Member(1).ID()
	for range 2 {
		require.NoError(t, c.Replace(ctx, 1))
	}
	require.NotEqual(t, before, c.Member(1).ID())
	// A linearizable read from the new member's own store; a new member catches up first.
	got, err := c.ClientTo(t, 1).Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))

	require.NoError(t, c.Member(0).Kill())
	put(t, c.ClientTo(t, 1), "w")

	// It restarts with its data like any other, and its links can be cut.
	require.NoError(t, c.Member(0).Restart(ctx))
	require.NoError(t, c.Member(1).Kill())
	require.NoError(t, c.Member(1).Restart(ctx))
	_, err = c.ClientTo(t, 1).Get(ctx, "k") // linearizable: it has caught up
	require.NoError(t, err)
	require.NoError(t, c.Cut(1))
	put(t, c.ClientTo(t, 2), "x")
	got, err = c.ClientTo(t, 1).Get(ctx, "k", clientv3.WithSerializable())
	require.NoError(t, err)
	require.Equal(t, "w", string(got.Kvs[0].Value))
	requireHeld(t, c, 1)
}

// The member that answers a change may be the one that was just killed.
func TestAChangeWithoutAnAnswerIsRepeated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first error // nil: the first attempt is never answered
		want  error
		tries int
	}{
		"the connection breaks":    {first: status.Error(codes.Unavailable, "error reading from server: EOF"), tries: 2},
		"no answer":                {tries: 2},
		"etcd has lost its leader": {first: rpctypes.ErrTimeoutDueToLeaderFail, tries: 2},
		"etcd refuses":             {first: rpctypes.ErrUnhealthy, want: rpctypes.ErrUnhealthy, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			err := etcdtest.Attempts(etcdtest.Context(t), func(ctx context.Context) error {
				if tries++; tries > 1 {
					return nil
				}
				if test.first == nil {
					<-ctx.Done()
					return ctx.Err()
				}
				return test.first
			})
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.tries, tries)
		})
	}
}

// put writes, and repeats the write while the members elect a leader: a write is lost if it reaches
// the old leader or none.
func put(t *testing.T, cli *clientv3.Client, value string) {
	t.Helper()
	ctx := etcdtest.Context(t)
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := cli.Put(once, "k", value)
		cancel()
		if err == nil {
			return
		}
		require.NoError(t, ctx.Err(), err)
	}
}
