package regressions

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
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
	t.Run("black hole", func(t *testing.T) { open(t, alive.Client) })
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
	join(t, fresh, etcdtest.Election(t)).Lead(t)
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
	// The candidate's client alone: its session has another one.
	cli := c.Client(t)
	late := join(t, c.Client(t), name, func(_ *lease.Config, e *election.Config) { e.KV, e.Watcher = cli, cli })
	require.NoError(t, cli.Close())
	begin = time.Now()
	require.Error(t, etcdtest.Err(late.Candidate.Campaign(etcdtest.Context(t))))
	require.Less(t, time.Since(begin), atOnce)
	require.NoError(t, late.Session.Close(etcdtest.Context(t)))
	require.NoError(t, late.Candidate.Close(etcdtest.Context(t)))
}

// Row 47. A client that the program has put together from a KV, a Watcher and a Lease has no
// context. Elsewhere a campaign panics with it when the campaign's context ends; the first
// requests of package concurrency of compat did. Here nothing asks for what it does not have.
//
// Fails when internal/rpcerr.Closed takes a client for one with a context.
func TestRegression47_ClientOfParts(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli, name := c.Client(t), etcdtest.Election(t)
	parts := &clientv3.Client{KV: cli.KV, Watcher: cli.Watcher, Lease: cli.Lease}
	cancelled, cancel := context.WithCancel(context.Background())

	t.Run("eldest", func(t *testing.T) {
		alone := func(l *lease.Config, _ *election.Config) { l.Majority = lease.Unconfirmed{} }
		first, second := join(t, parts, name, alone), join(t, parts, name, alone)
		observer, err := observe.New(observe.Config{Election: name, KV: parts, Watcher: parts})
		require.NoError(t, err)
		defer observer.Close()
		tenure := first.Lead(t)
		result := second.Queue(t)
		require.NoError(t, tenure.Proclaim(etcdtest.Context(t), []byte("value")))
		etcdtest.Eventually(t, func() bool { return string(observer.State().Leader.Value) == "value" }, "the leader's value")
		require.NoError(t, tenure.Resign(etcdtest.Context(t)))
		next := electiontest.Wins(t, result)
		require.ErrorIs(t, etcdtest.Err(first.Candidate.Try(etcdtest.Context(t))), eldest.ErrNotElected)
		require.NoError(t, second.Session.Close(etcdtest.Context(t)))
		require.ErrorIs(t, next.Err(), eldest.ErrClosed)
	})
	t.Run("in place of etcd's concurrency package", func(t *testing.T) {
		s, err := concurrency.NewSession(parts, concurrency.WithContext(etcdtest.Context(t)), concurrency.WithTTL(-1))
		require.NoError(t, err)
		other, err := concurrency.NewSession(parts, concurrency.WithContext(etcdtest.Context(t)))
		require.NoError(t, err)
		leader := concurrency.NewElection(s, name+"-compat")
		require.NoError(t, leader.Campaign(etcdtest.Context(t), "v"))
		waiting := etcdtest.Go(func() error { return concurrency.NewElection(other, name+"-compat").Campaign(cancelled, "w") })
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name+"-compat")) == 2 }, "the second one waits")
		cancel()
		require.ErrorIs(t, etcdtest.Take(t, waiting, "the end of its campaign"), context.Canceled)
		locker := concurrency.NewLocker(s, name+"-mutex")
		locker.Lock()
		locker.Unlock() //nolint:staticcheck // taken and given back
		require.ErrorIs(t, etcdtest.Err(concurrency.NewSession(parts)), eldest.ErrInvalid, "without a context of its own or of the client's")
		require.NoError(t, other.Close())
		require.NoError(t, s.Close())
	})
}
