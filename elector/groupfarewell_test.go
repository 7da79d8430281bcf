package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// deafRevoke is a lease client whose revocations receive no reply.
type deafRevoke struct{ clientv3.Lease }

func (deafRevoke) Revoke(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The last Run closes the session, which takes Config.Leave. Meanwhile a Run whose context has
// ended must return at once. The test fails if it waits for the end of the session with the group's
// mutex: then every further Run blocks as well, whatever its context, even one with a nil lead or a
// name that is in use.
func TestRunBehindAFarewell(t *testing.T) {
	t.Parallel()
	const leave = 3 * time.Second
	cli := etcdtest.Shared(t).Client(t)
	cfg := config("", "n-farewell", cli)
	cfg.Leave = leave
	cfg.Source = elector.Always(elector.Clients{KV: cli, Watcher: cli, Lease: deafRevoke{cli}, Majority: cli})
	g, err := elector.NewGroup(cfg)
	require.NoError(t, err)
	all := names(t, 3)
	won := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		_ = g.Run(ctx, all[0], func(ctx context.Context, _ *elector.Leadership) error {
			won <- struct{}{}
			<-ctx.Done()
			return nil
		})
	}()
	etcdtest.Take(t, won, "the win")
	stop()
	time.Sleep(300 * time.Millisecond) // the first Run closes the session now
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i, name := range all[1:] {
		began := time.Now()
		_ = g.Run(over, name, untilOver)
		took := time.Since(began)
		t.Logf("run %d took %v", i, took)
		require.Less(t, took, leave/3, "run %d: its context had ended before", i)
	}
	<-first
}
