package curator

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A standby function of a node runs while the node forwards, with the position, and has returned
// when Services is called: the service uses what it has written, without a lock.
func TestStandby(t *testing.T) {
	election := etcdtest.Election(t)
	a := run(t, election, "a")
	a.becomes(elector.Leading)
	next, over := make(chan string, 1024), make(chan error, 1)
	var running atomic.Bool
	cache := ""
	b := run(t, election, "b", func(cfg *Config) {
		cfg.Elector.Standby = func(ctx context.Context, p *elector.Positions) {
			running.Store(true)
			defer running.Store(false)
			for {
				position, err := p.Next(ctx)
				if err != nil {
					over <- err
					return
				}
				if l, ok := position.Status.Leader(); ok && position.Ahead == 1 {
					cache = "warm"
					next <- l.NodeID
				}
			}
		}
		cfg.Services = func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			if running.Load() {
				t.Error("the standby function still runs")
			}
			answer := wrapperspb.Bytes([]byte(fmt.Sprintf("%s %d", cache, l.Token())))
			return serving(func(*elector.Leadership) *script {
				return &script{unary: func(context.Context, *message) (*message, error) { return answer, nil }}
			})(ctx, l, r)
		}
	})
	require.Equal(t, "a", etcdtest.Take(t, next, "the position"))
	require.Contains(t, b.says(), "a ", "it forwards meanwhile")
	require.ErrorIs(t, a.end(nil), context.Canceled)
	require.ErrorIs(t, etcdtest.Take(t, over, "the end of the standby function"), eldest.ErrNoLeader)
	require.Contains(t, b.says(), "warm ")
}
