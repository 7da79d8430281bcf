package curator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A standby function of a node runs while the node forwards, and has returned when Services is
// called: the service uses what it has written, without a lock.
func TestStandby(t *testing.T) {
	election := etcdtest.Election(t)
	a := run(t, election, "a")
	a.becomes(elector.Leading)
	warm := make(chan struct{}, 1)
	cache := ""
	b := run(t, election, "b", func(cfg *Config) {
		cfg.Elector.Standby = func(ctx context.Context, _ *elector.Positions) {
			cache = "warming"
			warm <- struct{}{}
			<-ctx.Done()
			cache = "warm"
		}
		cfg.Services = serving(func(*elector.Leadership) *script {
			answer := wrapperspb.Bytes([]byte(cache))
			return &script{unary: func(context.Context, *message) (*message, error) { return answer, nil }}
		})
	})
	etcdtest.Take(t, warm, "the standby function")
	require.Contains(t, b.says(), "a ", "it forwards meanwhile")
	require.ErrorIs(t, a.end(nil), context.Canceled)
	require.Equal(t, "warm", b.says())
}
