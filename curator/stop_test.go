package curator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// limits sets the three times of the end of a node.
func limits(drain, grace, shutdown time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.Drain, cfg.Grace, cfg.Shutdown = drain, grace, shutdown }
}

// ending is a leader and a follower with the same limits, and a unary call under way that the
// follower has forwarded. The handler returns when its context ends, or with an answer when release
// is closed.
func ending(t *testing.T, change func(*Config)) (leader, follower *member, call <-chan error, release chan struct{}) {
	t.Helper()
	election := etcdtest.Election(t)
	began, release := make(chan struct{}, 9), make(chan struct{})
	services := func(cfg *Config) {
		cfg.Services = serving(func(*elector.Leadership) *script {
			return &script{unary: func(ctx context.Context, in *message) (*message, error) {
				began <- struct{}{}
				select {
				case <-release:
					return in, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}, stream: echoes}
		})
	}
	leader = run(t, election, "leader", services, change)
	leader.becomes(elector.Leading)
	follower = run(t, election, "follower", services, change)
	follower.becomes(elector.Following)
	call = follower.ask("")
	etcdtest.Take(t, began, "the handler")
	return leader, follower, call, release
}

// Each of the three times bounds one wait and no other: Drain that for the unary calls of a leader
// that stops, and Shutdown that for the calls that a stopping node has forwarded.
func TestDrainAndShutdownAreSeparate(t *testing.T) {
	short, long := time.Millisecond, etcdtest.Patience
	for name, tc := range map[string]struct {
		limits          func(*Config)
		leader, answers bool
	}{
		"drain":       {limits(long, long, short), true, true},
		"no drain":    {limits(short, long, long), true, false},
		"shutdown":    {limits(short, short, long), false, true},
		"no shutdown": {limits(long, long, short), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leader, follower, call, release := ending(t, tc.limits)
			stops := map[bool]*member{true: leader, false: follower}[tc.leader]
			if tc.answers {
				stops.stop(context.Canceled)
				etcdtest.Eventually(t, func() bool { return stops.isStopping() && stops.router.Now().Tenure == nil }, "it is stopping")
				require.Equal(t, tc.leader, stops.Status().Role() == elector.Leading, "a leader leads until its calls have ended")
				close(release)
				require.NoError(t, etcdtest.Take(t, call, "the answer"))
				return
			}
			require.ErrorIs(t, stops.end(context.Canceled), context.Canceled)
			requireCode(t, codes.Unavailable, etcdtest.Take(t, call, "the end of the call"))
		})
	}
}

// Stop ends each wait of a node that is stopping: calls under way end, leadership is given up all
// the same, and Run returns.
func TestStopEndsAtOnce(t *testing.T) {
	cause := errors.New("the first signal")
	for _, stopping := range []string{"leader", "follower"} {
		t.Run(stopping, func(t *testing.T) {
			t.Parallel()
			leader, follower, call, _ := ending(t, grace(time.Hour))
			m := map[string]*member{"leader": leader, "follower": follower}[stopping]
			m.stop(cause)
			etcdtest.Eventually(t, m.isStopping, "it is stopping")
			time.Sleep(20 * time.Millisecond)
			require.Empty(t, m.done, "it has not waited for the call")
			require.Empty(t, call)
			m.Stop()
			m.Stop()
			require.ErrorIs(t, m.end(cause), cause)
			err := etcdtest.Take(t, call, "the end of the call")
			require.Equal(t, codes.Unavailable, status.Code(err), "Run has waited for the end of the call: %v", err)
			if m == leader {
				follower.becomes(elector.Leading) // its lease would be valid for a minute
			}
		})
	}

	t.Run("without ctx", func(t *testing.T) {
		leader, follower, call, _ := ending(t, grace(time.Hour))
		leader.Stop()
		err := etcdtest.Take(t, leader.done, "the end of Run")
		leader.done <- err
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.NotErrorIs(t, err, eldest.ErrStuck)
		requireCode(t, codes.Unavailable, etcdtest.Take(t, call, "the end of the call"))
		follower.becomes(elector.Leading)
	})

	t.Run("before Run", func(t *testing.T) {
		n := newNode(t, "n")
		n.Stop()
		require.ErrorIs(t, n.Run(context.Background()), eldest.ErrClosed)
	})
}

// Stop answers calls whose handlers ignore the end of their tenure, without waiting for Grace.
func TestStopDoesNotWaitForHandlers(t *testing.T) {
	s, began, release := held()
	n := newNode(t, "n", patient, grace(time.Hour))
	n.leads(7, s)
	done := n.ask("")
	etcdtest.Take(t, began, "the handler")
	over := asking(func() error { n.loses(); return nil })
	n.routed(func(r *route) bool { return r.Tenure == nil })
	require.Empty(t, done)
	n.Stop()
	requireRetry(t, etcdtest.Take(t, done, "the answer"))
	require.Empty(t, over, "the tenure ends before its handlers")
	release <- struct{}{}
	require.NoError(t, etcdtest.Take(t, over, "the end of the tenure"))
}

// Stop does not wait for handlers of local services that ignore their contexts, however long
// Shutdown is.
func TestStopDoesNotWaitForLocalHandlers(t *testing.T) {
	t.Parallel()
	s, began, release := held()
	defer close(release)
	m := run(t, etcdtest.Election(t), "n", grace(time.Hour), func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), s) }
	})
	go func() {
		_ = m.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &message{})
	}()
	etcdtest.Take(t, began, "the handler")
	m.Stop()
	err := etcdtest.Take(t, m.done, "the end of Run")
	m.done <- err
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.ErrorIs(t, err, eldest.ErrStuck)
}
