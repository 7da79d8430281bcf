package election_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 30: a thousand elections on one session: one lease, one stream of watches, one transaction
// each; and nothing is left.
func TestThousandElectionsOnOneSession(t *testing.T) {
	s := &env{etcdtest.NewEnv(t, etcdtest.Shared(t))} // not in parallel: it counts goroutines
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(context.Background(), 3*patience) // so many take time
	t.Cleanup(cancel)
	const n = 1000
	var streams atomic.Int64
	s.Client = etcdtest.Shared(t).Client(t, s.Rec.Attach, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				if strings.HasSuffix(method, "/Watch") {
					streams.Add(1)
				}
				return open(ctx, desc, cc, method, opts...)
			}))
	})
	before := runtime.NumGoroutine()
	session := s.session(s.Client)
	candidates := make([]*election.Candidate, n)
	for i := range candidates {
		candidates[i] = s.candidate("v", on(session), func(cfg *election.Config) {
			cfg.Election = fmt.Sprintf("%s-%d", s.Election, i)
		})
	}
	each := func(f func(c *election.Candidate) error) {
		t.Helper()
		const workers = 16
		errs := make(chan error, workers)
		for w := range workers {
			go func() {
				for i := w; i < n; i += workers {
					if err := f(candidates[i]); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		for range workers {
			require.NoError(t, get(s, errs))
		}
	}
	leaders := make(chan *election.Leadership, n)
	each(func(c *election.Candidate) error {
		l, err := c.Campaign(s.Ctx)
		leaders <- l
		return err
	})
	s.watched(n)
	require.Equal(t, n, s.Rec.Count("Txn"))
	require.Equal(t, n, s.Rec.Count("Watch"))
	require.Equal(t, 1, s.Rec.Count("LeaseGrant"))
	require.Zero(t, s.Rec.Count("Range"))
	require.Equal(t, int64(1), streams.Load())
	require.Less(t, runtime.NumGoroutine()-before, n/10, "goroutines: none for an election that is led")

	// The end of the session ends all tenures at once.
	require.NoError(t, session.Close(s.Ctx))
	for range n {
		require.ErrorIs(t, s.over(get(s, leaders)), eldest.ErrClosed)
	}
	each(func(c *election.Candidate) error { return c.Close(context.WithoutCancel(s.Ctx)) })
	require.Equal(t, n, s.Rec.Count("Txn"), "their keys went with the lease")
}
