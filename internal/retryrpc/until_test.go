package retryrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retryrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("etcd is away")

// client is a client that has a context, as etcd's has.
type client func() context.Context

func (c client) Ctx() context.Context { return c() }

func policy() retryrpc.Policy {
	return retryrpc.Policy{Timeout: time.Second, Backoff: func(int) time.Duration { return 100 * time.Millisecond }}
}

// hole is a request that is never answered.
func hole(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestAskedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, attempts := time.Now(), []int{}
		p := policy()
		p.Backoff = func(attempt int) time.Duration {
			attempts = append(attempts, attempt)
			return 100 * time.Millisecond
		}
		type failure struct {
			attempt int
			err     error
			pause   time.Duration
		}
		var failures []failure
		p.Failed = func(attempt int, err error, pause time.Duration) {
			failures = append(failures, failure{attempt, err, pause})
		}
		n := 0
		err := p.Until(t.Context(), func(ctx context.Context) error {
			n++
			switch n {
			case 1:
				return hole(ctx)
			case 2:
				return rpctypes.ErrLeaderChanged
			case 3:
				return errAway
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2}, attempts)
		require.Equal(t, 1300*time.Millisecond, time.Since(begun), "an attempt outlasted its time-out")
		const pause = 100 * time.Millisecond
		require.Equal(t, []failure{
			{1, context.DeadlineExceeded, pause}, {2, rpctypes.ErrLeaderChanged, pause}, {3, errAway, pause},
		}, failures)
	})
}

// TestWhatEndsIt: these errors end Until at once, after one attempt.
func TestWhatEndsIt(t *testing.T) {
	closing := status.Error(codes.Canceled, "grpc: the client connection is closing")
	for name, tc := range map[string]struct{ answer, want error }{
		"refused for good":        {rpctypes.ErrPermissionDenied, rpctypes.ErrPermissionDenied},
		"final":                   {retryrpc.Final(errAway), errAway},
		"final, though a refusal": {retryrpc.Final(rpctypes.ErrTooManyRequests), rpctypes.ErrTooManyRequests},
		"closed client":           {closing, eldest.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, n := time.Now(), 0
				err := policy().Until(t.Context(), func(context.Context) error { n++; return tc.answer })
				require.ErrorIs(t, err, tc.want)
				require.Equal(t, 1, n)
				require.Zero(t, time.Since(begun))
			})
		})
	}
}

// TestRefusalsOfOthers: a refusal that is not etcd's own is final if only refusals come for a
// while.
func TestRefusalsOfOthers(t *testing.T) {
	forbidden := status.Error(codes.PermissionDenied, "unexpected HTTP status code received from server: 403 (Forbidden)")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.ErrorIs(t, policy().Until(t.Context(), func(context.Context) error { return forbidden }), forbidden)
		require.Greater(t, time.Since(begun), retryrpc.Insistent)
		require.Less(t, time.Since(begun), retryrpc.Insistent+time.Second)

		begun, last := time.Now(), time.Time{}
		err := policy().Until(t.Context(), func(context.Context) error {
			if time.Since(begun) < time.Minute && time.Since(last) > retryrpc.Insistent-time.Second {
				last = time.Now()
				return errAway
			}
			return forbidden
		})
		require.ErrorIs(t, err, forbidden)
		require.Greater(t, time.Since(begun), time.Minute, "other answers came between")
	})
}

// TestEndsWithItsContext: the error has the cause and the last answer. If the context had ended
// before, nothing is sent.
func TestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second+50*time.Millisecond, func() { cancel(cause) })
		begun := time.Now()
		err := policy().Until(ctx, func(context.Context) error { return errAway })
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, errAway)
		require.Equal(t, 10*time.Second+50*time.Millisecond, time.Since(begun))

		err = policy().Until(ctx, func(context.Context) error { t.Error("asked"); return nil })
		require.ErrorIs(t, err, cause)

		during, stop := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, cause)
		defer stop()
		begun = time.Now()
		p := policy()
		p.Failed = func(int, error, time.Duration) { t.Error("another attempt follows?") }
		require.ErrorIs(t, p.Until(during, hole), cause)
		require.Equal(t, 500*time.Millisecond, time.Since(begun))
	})
}

// TestClosedClientIsNotAsked: a closed client gets no request, and no second one if it is closed
// meanwhile, even if its errors do not show that.
func TestClosedClientIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		p := policy()
		p.Client = client(func() context.Context { return life })
		n := 0
		err := p.Until(t.Context(), func(ctx context.Context) error { n++; end(); return hole(ctx) })
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.Equal(t, 1, n)
		require.ErrorIs(t, p.Until(t.Context(), func(context.Context) error { n++; return nil }), eldest.ErrClosed)
		require.Equal(t, 1, n)
	})
}
