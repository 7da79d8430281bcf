package clockctx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/clockctx"
	"github.com/eldest-io/eldest/lease"
)

// A context that is made from one with a clock carries that clock, whatever ends it; other contexts
// carry none, which is the default of a lease.Config.
func TestOf(t *testing.T) {
	clock := lease.Monotonic()
	ctx, cancel := context.WithCancel(context.WithoutCancel(clockctx.With(t.Context(), clock)))
	cancel()
	require.Equal(t, clock, clockctx.Of(ctx))
	cfg := lease.Config{Options: lease.Options{Clock: clockctx.Of(t.Context())}}
	require.True(t, cfg.Clock == nil, "an interface with a nil clock in it would be read")
}
