package fence_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// stopped is a leadership as its process sees it that was stopped after its last look:
// whatever happens, it has not heard of the end.
type stopped struct{ *election.Leadership }

func (stopped) Err() error { return nil }

// Requirement 19, with tenures won on etcd: on HTTP and on gRPC the fence admits the
// leader, refuses the one before it, however sure of itself that is, and says so in a way
// that its client can tell; and a leader that has learned of its end sends nothing.
func TestRequirement19OlderTokensAreRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*etcdtest.Patience)
	defer cancel()
	cluster := etcdtest.Shared(t)
	client := cluster.Client(t)
	lead := func() *election.Leadership { return electiontest.Join(t, client, "requirement 19").Lead(t) }
	// One store for both ways: it is one resource.
	l, f := &ledger{}, newFence(t, func(cfg *fence.Config) { cfg.Elections = []string{"requirement 19"} })
	conn := l.serve(t, f)
	server := httptest.NewServer(f.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { l.write(r.Context(), "http") })))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	overHTTP := func(te fence.Tenure) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		require.NoError(t, err)
		resp, err := fence.Transport{Tenure: te, Base: base}.RoundTrip(r)
		if err != nil {
			return err
		}
		require.NoError(t, resp.Body.Close())
		return fence.Refused(resp)
	}
	overGRPC := func(te fence.Tenure) error { return puts(ctx, fence.Conn(conn, te), "grpc") }

	older := lead()
	require.NoError(t, overHTTP(older))
	require.NoError(t, overGRPC(older))
	_, err := client.Delete(ctx, older.Key())
	require.NoError(t, err)
	newer := lead()
	require.Greater(t, newer.Token(), older.Token())
	require.NoError(t, overGRPC(stopped{older}), "the fence learns of a tenure when its first request comes")
	require.NoError(t, overHTTP(newer))

	for name, send := range map[string]func(fence.Tenure) error{"HTTP": overHTTP, "gRPC": overGRPC} {
		err := send(stopped{older})
		var refused *fence.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, fence.RefusedError{Election: "requirement 19", Token: older.Token(), Newest: newer.Token()}, *refused)
		require.ErrorIs(t, err, eldest.ErrNotLeading, name)
	}
	select {
	case <-older.Done():
	case <-ctx.Done():
		require.FailNow(t, "the older tenure does not end")
	}
	before := len(l.lines())
	for name, send := range map[string]func(fence.Tenure) error{"HTTP": overHTTP, "gRPC": overGRPC} {
		err := send(older)
		require.ErrorIs(t, err, eldest.ErrNotLeading, name)
		require.ErrorIs(t, err, eldest.ErrDeposed, name)
		var refused *fence.RefusedError
		require.False(t, errors.As(err, &refused), "%s: nobody was asked", name)
	}
	require.Len(t, l.lines(), before)
	require.NoError(t, overGRPC(newer))
	require.NoError(t, newer.Resign(ctx))
}
