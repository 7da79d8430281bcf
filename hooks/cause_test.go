package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/hooks"
)

// Cause returns one word, however deep the reason is wrapped, and of several reasons the one from
// outside.
func TestCause(t *testing.T) {
	for want, err := range map[string]error{
		"session_lost": &eldest.OpError{Op: "session", Err: fmt.Errorf("%w: %w", eldest.ErrSessionLost, eldest.ErrUnresponsive)},
		"deposed":      fmt.Errorf("x: %w", errors.Join(eldest.ErrClosed, eldest.ErrDeposed)),
		"suspended":    fmt.Errorf("%w: %w", eldest.ErrNotLeading, eldest.ErrSuspended),
		"resigned":     eldest.ErrResigned,
		"withdrawn":    fmt.Errorf("y: %w", eldest.ErrWithdrawn),
		"drained":      eldest.ErrDraining,
		"requeued":     eldest.ErrRequeued,
		"closed":       eldest.ErrClosed,
		"canceled":     context.DeadlineExceeded,
		"other":        errors.New("session lost, says somebody"),
	} {
		require.Equal(t, want, hooks.Cause(err))
		require.Contains(t, hooks.Causes(), want)
	}
	require.Len(t, hooks.Causes(), 10, "each once")
}

func TestTrouble(t *testing.T) {
	for want, err := range map[string]error{
		"unresponsive": fmt.Errorf("%w: %w", eldest.ErrSessionLost, eldest.ErrUnresponsive),
		"no_answer":    fmt.Errorf("no majority: %w", context.DeadlineExceeded),
		"refused":      fmt.Errorf("x: %w", rpctypes.ErrPermissionDenied),
		"canceled":     context.Canceled,
		"session_lost": eldest.ErrSessionLost,
		"other":        errors.New("?"),
	} {
		require.Equal(t, want, hooks.Trouble(err))
	}
	require.Equal(t, "no_answer", hooks.Trouble(rpctypes.ErrNoLeader))
	require.Equal(t, "no_answer", hooks.Trouble(eldest.ErrUnavailable))
}
