package security

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// A client that does not reach etcd gets an error when its context ends, and a client that etcd
// refuses gets it at once; in no case is anything changed.
func TestWhoDoesNotGetIn(t *testing.T) {
	t.Parallel()
	f := newFortress(t, simple, 0)
	f.user("node", on(svc, readWrite))
	stranger := etcdtest.NewAuthority(t)
	elsewhere := secured(t, f.ca, f.ca.Issue("elsewhere"), map[string]any{})
	mistrusting := stranger.Client(f.ca.Issue("node"))
	plain := strings.Replace(f.endpoint, "https://", "http://", 1)
	before := f.contents()
	for name, tc := range map[string]struct {
		cfg  clientv3.Config
		want error
	}{
		"no certificate":           {f.config("", f.ca.Client()), context.DeadlineExceeded},
		"a stranger's certificate": {f.config("", f.ca.Client(stranger.Issue("node"))), context.DeadlineExceeded},
		"does not trust etcd":      {f.config("", mistrusting), context.DeadlineExceeded},
		"etcd has another name": {f.config("", f.ca.Client(f.ca.Issue("node")), func(cfg *clientv3.Config) {
			cfg.Endpoints = []string{elsewhere}
		}), context.DeadlineExceeded},
		"plain text":                   {f.config("", nil, func(cfg *clientv3.Config) { cfg.Endpoints = []string{plain} }), context.DeadlineExceeded},
		"a certificate of no user":     {f.config("", f.ca.Client(f.ca.Issue("nobody"))), rpctypes.ErrPermissionDenied},
		"a certificate without a name": {f.config("", f.ca.Client(f.ca.Issue(""))), rpctypes.ErrPermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			cli, err := clientv3.New(tc.cfg)
			require.NoError(t, err)
			defer func() { _ = cli.Close() }()
			its := 300 * time.Millisecond
			if !errors.Is(tc.want, context.DeadlineExceeded) {
				its = etcdtest.Patience // a refusal does not take that long
			}
			ctx, cancel := context.WithTimeout(t.Context(), its)
			defer cancel()
			_, err = observe.LeaderOf(ctx, cli, svc)
			require.ErrorIs(t, err, tc.want)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			session, err := lease.Open(ctx, lease.Config{Lease: cli, Options: lease.Options{TTL: 10 * time.Second}})
			if err == nil { // a user with a valid certificate may have a lease
				t.Log("it was granted a lease")
				require.NoError(t, session.Close(etcdtest.Context(t)))
			} else {
				require.ErrorAs(t, err, &op)
				t.Logf("leader: %v", err)
			}
			require.Equal(t, before, f.contents())
		})
	}
	// With a wrong password a client cannot even be made.
	for _, user := range []string{"node", "nobody"} {
		cfg := f.config(user, f.ca.Client(f.ca.Issue("somebody")))
		cfg.Password = "wrong"
		require.ErrorIs(t, etcdtest.Err(clientv3.New(cfg)), rpctypes.ErrAuthFailed)
	}
	require.Equal(t, before, f.contents())
}
