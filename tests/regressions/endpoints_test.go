package regressions

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 8 (etcd #19778, #14631). A new session against an endpoint that is dead, stopped or a black
// hole. In other implementations the call hangs, regardless of its context. In Eldest it fails when
// the context ends.
//
// Fails when lease.Open grants without the caller's context.
func TestRegression08_SessionOnDeadEndpoint(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	hole := c.Host(t)
	alive := join(t, hole.Client(t), etcdtest.Election(t)) // its client is connected
	hole.Cut()
	open := func(t *testing.T, cli *clientv3.Client) {
		t.Helper()
		for call, f := range map[string]func(context.Context) (*lease.Session, error){
			"open": func(ctx context.Context) (*lease.Session, error) { return lease.Open(ctx, lease.Config{Lease: cli}) },
			"resume": func(ctx context.Context) (*lease.Session, error) {
				return lease.Resume(ctx, lease.Config{Lease: cli}, 1)
			},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			begin := time.Now()
			failed := make(chan error, 1)
			go func() {
				s, err := f(ctx)
				if err == nil || s != nil {
					err = fmt.Errorf("a session %v beside the error: %w", s, err)
				}
				failed <- err
			}()
			err := etcdtest.Take(t, failed, "the end of "+call)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, call)
			require.Less(t, time.Since(begin), atOnce, call)
		}
	}
	t.Run("black hole", func(t *testing.T) { open(t, alive.Client) })
	t.Run("black hole, never connected", func(t *testing.T) { open(t, hole.Client(t)) })
	fresh := c.Client(t)
	require.NoError(t, c.Member(0).Stop())
	t.Run("stopped", func(t *testing.T) { open(t, fresh) })
	require.NoError(t, c.Member(0).Cont())
	require.NoError(t, c.Member(0).Kill())
	t.Run("dead", func(t *testing.T) { open(t, fresh) })
	// A session that is being opened when etcd becomes available is opened.
	opened := make(chan error, 1)
	go func() {
		s, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: fresh})
		if err == nil {
			err = s.Close(etcdtest.Context(t))
		}
		opened <- err
	}()
	require.NoError(t, c.Member(0).Restart(etcdtest.Context(t)))
	require.NoError(t, etcdtest.Take(t, opened, "the session that was being opened"))
	hole.Mend()
	join(t, fresh, etcdtest.Election(t)).Lead(t)
}

// Row 40, a client that was closed: all calls in progress, and all new ones, end soon with an
// error, instead of being retried for ever.
//
// Fails when requests are repeated on a closed client: the errors of its own cancellation look
// temporary.
func TestRegression40_ClosedClient(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	leader := join(t, c.Client(t), name).Lead(t)
	p := join(t, c.Client(t), name)
	result := p.Queue(t)
	etcdtest.Take(t, p.Waiting, "its wait")
	require.NoError(t, p.Client.Close())
	begin := time.Now()
	electiontest.Fails(t, result)
	require.Less(t, time.Since(begin), atOnce, "a campaign on a closed client went on")
	require.ErrorIs(t, etcdtest.Err(lease.Open(etcdtest.Context(t), lease.Config{Lease: p.Client})), eldest.ErrClosed)
	require.ErrorIs(t, etcdtest.Err(lease.Resume(etcdtest.Context(t), lease.Config{Lease: p.Client}, p.Session.ID())), eldest.ErrClosed)
	begin = time.Now()
	require.ErrorIs(t, p.Session.Close(etcdtest.Context(t)), eldest.ErrClosed, "its lease cannot be revoked")
	require.Less(t, time.Since(begin), atOnce)
	require.NoError(t, leader.Err())
	// Only the candidate's client is closed: its session uses another one.
	cli := c.Client(t)
	late := join(t, c.Client(t), name, func(_ *lease.Config, e *election.Config) { e.KV, e.Watcher = cli, cli })
	require.NoError(t, cli.Close())
	begin = time.Now()
	require.Error(t, etcdtest.Err(late.Candidate.Campaign(etcdtest.Context(t))))
	require.Less(t, time.Since(begin), atOnce)
	require.NoError(t, late.Session.Close(etcdtest.Context(t)))
	require.NoError(t, late.Candidate.Close(etcdtest.Context(t)))
}
