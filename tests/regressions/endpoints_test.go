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
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 8 (etcd #19778, #14631). A new session against an endpoint that is dead, stopped
// or a black hole. Elsewhere it hangs, whatever the context says. Here it fails within
// the context.
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
	t.Run("black hole", func(t *testing.T) { open(t, alive.client) })
	t.Run("black hole, never connected", func(t *testing.T) { open(t, hole.Client(t)) })
	fresh := c.Client(t)
	require.NoError(t, c.Member(0).Stop())
	t.Run("stopped", func(t *testing.T) { open(t, fresh) })
	require.NoError(t, c.Member(0).Cont())
	require.NoError(t, c.Member(0).Kill())
	t.Run("dead", func(t *testing.T) { open(t, fresh) })
	// One that is being opened when etcd comes back is opened.
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
	join(t, fresh, etcdtest.Election(t)).lead(t)
}

// Row 40. Input that cannot work, and durations that need rounding. Elsewhere: a panic,
// a lease of another length than was asked for, a campaign that hangs. Here: a typed
// error before any request is sent, which names the operation and the election; or the
// documented rounding. These are the inputs of the row; all others are in tests/badinput.
//
// Fails when a check of a Config is left out, or moved behind the first request.
func TestRegression40_BadInput(t *testing.T) {
	t.Parallel()
	var rec etcdtest.Recorder
	c := etcdtest.Shared(t)
	cli := c.Client(t, rec.Attach)
	name := etcdtest.Election(t)
	ctx := etcdtest.Context(t)
	var noClient *clientv3.Client
	good := join(t, cli, name, ttl(time.Hour)) // nothing is renewed meanwhile
	_, err := cli.Get(ctx, "connected")
	require.NoError(t, err)
	rec.Reset()
	session := func(cfg lease.Config) func() error {
		return func() error { _, err := lease.Open(ctx, cfg); return err }
	}
	candidate := func(change func(*election.Config)) func() error {
		return func() error {
			cfg := election.Config{Election: name, Session: good.session, KV: cli, Watcher: cli}
			change(&cfg)
			_, err := election.New(cfg)
			return err
		}
	}
	for what, f := range map[string]func() error{
		"no lease client":  session(lease.Config{}),
		"nil lease client": session(lease.Config{Lease: noClient}),
		"negative TTL":     session(lease.Config{Lease: cli, TTL: -1}),
		"a year's TTL":     session(lease.Config{Lease: cli, TTL: 365 * 24 * time.Hour}),
		"no name":          candidate(func(e *election.Config) { e.Election = "" }),
		"nil KV":           candidate(func(e *election.Config) { e.KV = noClient }),
		"nil watcher":      candidate(func(e *election.Config) { e.Watcher = noClient }),
	} {
		var err error
		require.NotPanics(t, func() { err = f() }, what)
		require.ErrorIs(t, err, eldest.ErrInvalid, what)
		var op *eldest.OpError
		require.ErrorAs(t, err, &op, what)
		require.NotEmpty(t, op.Op, what)
	}
	require.Zero(t, rec.Count(), "something was sent: %v", rec.Methods())

	// etcd grants whole seconds; a longer lease than was asked for is safe, a
	// shorter one, or a default, is not.
	for asked, granted := range map[time.Duration]time.Duration{
		0:                       lease.DefaultTTL,
		time.Nanosecond:         time.Second,
		900 * time.Millisecond:  time.Second,
		1900 * time.Millisecond: 2 * time.Second,
		2 * time.Second:         2 * time.Second,
		lease.MaxTTL:            lease.MaxTTL,
	} {
		p := join(t, cli, name, ttl(asked))
		require.Equal(t, granted, p.session.TTL(), "asked for %v", asked)
	}
}

// Row 40, a client that was closed: whatever was going on or begins ends soon, with an
// error, instead of retrying for ever.
//
// Fails when requests are repeated on a client that is closed: its own cancellations
// look like passing ones.
func TestRegression40_ClosedClient(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	leader := join(t, c.Client(t), name).lead(t)
	p := join(t, c.Client(t), name)
	result := p.queue(t)
	etcdtest.Take(t, p.waiting, "its wait")
	require.NoError(t, p.client.Close())
	begin := time.Now()
	fails(t, result)
	require.Less(t, time.Since(begin), atOnce, "a campaign on a closed client went on")
	_, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: p.client})
	require.ErrorIs(t, err, eldest.ErrClosed)
	_, err = lease.Resume(etcdtest.Context(t), lease.Config{Lease: p.client}, p.session.ID())
	require.ErrorIs(t, err, eldest.ErrClosed)
	begin = time.Now()
	require.ErrorIs(t, p.session.Close(etcdtest.Context(t)), eldest.ErrClosed, "its lease cannot be revoked")
	require.Less(t, time.Since(begin), atOnce)
	require.NoError(t, leader.Err())
	// The candidate's client alone: its session has another one.
	cli := c.Client(t)
	late := join(t, c.Client(t), name, func(_ *lease.Config, e *election.Config) { e.KV, e.Watcher = cli, cli })
	require.NoError(t, cli.Close())
	begin = time.Now()
	_, err = late.candidate.Campaign(etcdtest.Context(t))
	require.Error(t, err)
	require.Less(t, time.Since(begin), atOnce)
	require.NoError(t, late.session.Close(etcdtest.Context(t)))
	require.NoError(t, late.candidate.Close(etcdtest.Context(t)))
}
