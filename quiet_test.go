package eldest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// In a hand-over a candidate may send a request to a member that is a moment behind and refuses it.
// etcd's client then writes a warning to stderr, unless it has the logger that the documentation
// shows, or that of elector.Dial (which elector's tests check).
func TestRegression61HandOverWritesNothingToStderr(t *testing.T) {
	const shown = "Logger: zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),"
	for text, pages := range map[string][]string{
		shown: {"lease/doc.go", "lease/example_test.go", "tests/sqlite/main.go"},
		"elector.Dial(": {
			"README.md", "docs/getting-started.md",
			"examples/elector/main.go", "examples/curator/main.go", "examples/client/main.go", "examples/shards/main.go",
		},
	} {
		for _, page := range pages {
			content, err := os.ReadFile(page)
			require.NoError(t, err)
			require.Contains(t, string(content), text, page)
		}
	}
	written := stderrOf(t, func() {
		refusedHandOver(t, func(cfg *clientv3.Config) {
			cfg.Logger = zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel)))
		})
	})
	require.Empty(t, written)
	// If this fails because nothing is written, etcd's client has changed, and the option is no
	// longer needed.
	written = stderrOf(t, func() { refusedHandOver(t, func(cfg *clientv3.Config) { cfg.Logger = nil }) })
	require.Contains(t, written, "required revision is a future revision")
}

// refusedHandOver has a leader resign while another candidate waits, whose first question after that
// is refused as by a member that is behind.
func refusedHandOver(t *testing.T, with func(*clientv3.Config)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var refused atomic.Bool
	behind := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if asksOfPast(req) && refused.CompareAndSwap(false, true) {
			return rpctypes.ErrGRPCFutureRev
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	client := etcdtest.Shared(t).Client(t, with, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(behind))
	})
	name := strings.ReplaceAll(t.Name(), "/", "|")
	one, leave := enter(ctx, client, name, "one")
	defer leave()
	other, leaveToo := enter(ctx, client, name, "other")
	defer leaveToo()
	l, err := one.Campaign(ctx)
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(other.Register(ctx)))
	resigned := etcdtest.Go(func() error { return l.Resign(ctx) })
	next, err := other.Await(ctx)
	require.NoError(t, err)
	require.NoError(t, <-resigned)
	require.NoError(t, next.Resign(ctx))
	require.True(t, refused.Load(), "INVALID: no question was refused")
}

// asksOfPast reports whether a request reads at a given revision.
func asksOfPast(req any) bool {
	switch r := req.(type) {
	case *etcdserverpb.RangeRequest:
		return r.Revision > 0
	case *etcdserverpb.TxnRequest:
		for _, op := range r.Success {
			if read := op.GetRequestRange(); read != nil && read.Revision > 0 {
				return true
			}
		}
	}
	return false
}

// stderrOf returns what f writes to this process's stderr. No other test may run beside it.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stderr")
	to, err := os.Create(path)
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = to
	defer func() {
		os.Stderr = before
		require.NoError(t, to.Close())
	}()
	f()
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(written)
}
