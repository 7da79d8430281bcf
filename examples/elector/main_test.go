package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/electortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a node that counts under the key "count".
func start(t *testing.T) *electortest.Election {
	e := electortest.New(t)
	e.Start(func(ctx context.Context, l *elector.Leadership) error { return count(ctx, l, "n1", "count") })
	return e
}

func value(t *testing.T, e *electortest.Election) string {
	resp, err := e.Client().Get(t.Context(), "count")
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	return string(resp.Kvs[0].Value)
}

// A leader counts twice a second, and stops when it is deposed; the next one continues its count.
func TestCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in virtual time
		e := start(t)
		e.Win()
		e.Advance(2 * time.Second)
		require.Equal(t, "4", value(t, e))

		e.Lose(eldest.ErrDeposed)
		require.NoError(t, e.Wait())
		e.Advance(time.Minute)
		require.Equal(t, "4", value(t, e))

		e.Win()
		e.Advance(time.Second)
		require.Equal(t, "6", value(t, e))
	})
}

// A leader that etcd does not answer any more stops before its lease can expire.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t)
		l := e.Win()
		e.Advance(time.Second)
		e.Disconnect()
		e.Advance(10 * time.Second) // the TTL
		require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
		require.Error(t, e.Wait(), "the write that was not answered")
		require.Equal(t, "2", value(t, e))
	})
}

// A leader that cannot read the count gives leadership up.
func TestForeignCount(t *testing.T) {
	e := start(t)
	_, err := e.Client().Put(t.Context(), "count", "many")
	require.NoError(t, err)
	e.Win()
	require.ErrorContains(t, e.Wait(), "many")
}
