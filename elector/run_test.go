package elector_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

func quiet(c *elector.Config) { c.Logger = nil }

// Requirement 73: Run leads again and again, returns nil when its context ends, and leaves nothing.
func TestRequirement73Run(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	var tokens []eldest.Token
	err := elector.Run(ctx, cli, name, func(ctx context.Context, l *elector.Leadership) error {
		tokens = append(tokens, l.Token())
		if len(tokens) < 3 {
			return errEnough // leadership is given up, and another tenure follows
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}, quiet, func(c *elector.Config) { c.Backoff = func(int) time.Duration { return 0 } })
	require.NoError(t, err)
	require.Len(t, tokens, 3)
	require.IsIncreasing(t, tokens)
	require.Empty(t, queueOf(t, cli, name))
}

// The options reach the lease and the value; without them there are defaults.
func TestRunOptions(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	led := func(options ...elector.Option) (id identity.Identity, cfg elector.Config) {
		name := etcdtest.Election(t)
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		defer cancel()
		options = append(options, func(c *elector.Config) { cfg = *c })
		err := elector.Run(ctx, cli, name, func(ctx context.Context, l *elector.Leadership) error {
			defer cancel()
			leader, err := observe.LeaderOf(ctx, cli, name)
			assert.NoError(t, err)
			id, err = identity.Protobuf{}.Decode(leader.Value)
			return err
		}, options...)
		require.NoError(t, err)
		return id, cfg
	}
	log := slog.New(slog.DiscardHandler)
	id, cfg := led(elector.WithNodeID("one"), elector.WithTTL(7*time.Second), elector.WithHeartbeat(time.Second), elector.WithLogger(log))
	require.Equal(t, "one", id.NodeID)
	require.Equal(t, 7*time.Second, id.TTL)
	require.Equal(t, lease.Heartbeat{Timeout: time.Second}, cfg.Session.Heartbeat)
	require.Same(t, log, cfg.Logger)

	id, cfg = led()
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Contains(t, id.NodeID, host)
	require.Equal(t, lease.DefaultTTL, id.TTL)
	require.Same(t, slog.Default(), cfg.Logger)
}

// Bad input is refused before anything is sent; a lead function that does not return is an error.
func TestRunErrors(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	lead := func(context.Context, *elector.Leadership) error { return nil }
	ctx := etcdtest.Context(t)
	require.ErrorIs(t, elector.Run(ctx, nil, name, lead), eldest.ErrInvalid)
	require.ErrorIs(t, elector.Run(ctx, cli, "a/b", lead), eldest.ErrInvalid)
	require.ErrorIs(t, elector.Run(ctx, cli, name, nil), eldest.ErrInvalid)
	require.ErrorIs(t, elector.Run(nil, cli, name, lead), eldest.ErrInvalid) //nolint:staticcheck // what is tested
	err := elector.Run(ctx, cli, name, lead, elector.WithTTL(-1))
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, name)

	ending, cancel := context.WithCancel(ctx)
	release := make(chan struct{})
	defer close(release)
	err = elector.Run(ending, cli, name, func(context.Context, *elector.Leadership) error {
		cancel()
		<-release
		return nil
	}, quiet, elector.WithTTL(2*time.Second), func(c *elector.Config) { c.Drain = 100 * time.Millisecond })
	require.ErrorIs(t, err, eldest.ErrStuck)
	require.True(t, errors.Is(err, context.Canceled))
}

// Dial sets what leases need, but no field that is already set. It does not need a running etcd.
func TestDial(t *testing.T) {
	t.Parallel()
	cli, err := elector.Dial(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, cli.Close()) }()
	require.False(t, cli.GetLogger().Core().Enabled(1), "warnings")
	require.True(t, cli.GetLogger().Core().Enabled(2), "errors")
	require.ErrorIs(t, etcdtest.Err(elector.Dial(clientv3.Config{})), clientv3.ErrNoAvailableEndpoints)
}

// Bad input is an error also if the context has ended.
func TestRunErrorsAfterTheEnd(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, elector.Run(over, etcdtest.Shared(t).Client(t), etcdtest.Election(t), nil), eldest.ErrInvalid)
}
