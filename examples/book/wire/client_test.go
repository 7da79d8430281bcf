package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// Watches are counted when they are in place, not when they are requested. Waiting for a watch that
// is never opened ends with the context.
func TestWatching(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", strings.Join(etcdtest.Shared(t).Endpoints(), ","))
	client := wire.Connect("anna")
	defer client.Hangup()
	require.NoError(t, client.Watching(t.Context(), 0))
	ended, end := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	end(enough)
	require.ErrorIs(t, client.Watching(ended, 1), enough)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := client.Watch(ctx, "watched")
	client.Watch(ctx, "watched too")
	require.NoError(t, client.Watching(t.Context(), 2))
	// It is in place: nothing that happens from now on is missed.
	put, err := client.Put(t.Context(), "watched", "x")
	require.NoError(t, err)
	told := <-watched
	require.NoError(t, told.Err())
	require.Len(t, told.Events, 1)
	require.Equal(t, put.Header.Revision, told.Events[0].Kv.ModRevision)
	require.ErrorIs(t, client.Watching(ended, 3), enough)
}
