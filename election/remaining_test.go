package election_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// What remains is the lease's or the heartbeats' time, whichever ends sooner, and nothing once the
// tenure was suspended, or had been retired when its heartbeats ran out: not even when beats go through again.
//
// Fails when a stretch that begins later counts for a tenure that was over by then.
func TestRemaining(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli := cluster.Client(t)
	const slow = time.Second // for a busy machine
	ended := make(chan election.EndedEvent, 9)
	hooked := func(_ *lease.Config, e *election.Config) {
		e.Hooks.Ended = func(e election.EndedEvent) { ended <- e }
	}
	plain := electiontest.Join(t, cli, etcdtest.Election(t), hooked)
	require.Zero(t, plain.Candidate.Remaining())
	plain.Lead(t)
	require.Greater(t, plain.Candidate.Remaining(), slow, "the lease's")

	name := etcdtest.Election(t) + "beats"
	a := electiontest.Join(t, cli, name, func(l *lease.Config, _ *election.Config) { l.Heartbeat.Timeout = slow }, hooked)
	l := a.Lead(t)
	left := a.Candidate.Remaining()
	require.Less(t, left, slow)
	require.Positive(t, left)
	time.Sleep(left)
	require.Positive(t, a.Candidate.Remaining(), "beats add to it")

	require.NoError(t, cluster.Member(0).Stop())
	<-l.Done()
	require.Zero(t, a.Candidate.Remaining())
	require.Equal(t, election.Status{Token: l.Token(), Suspended: true}, a.Candidate.Status())
	require.NoError(t, cluster.Member(0).Cont())
	time.Sleep(slow)
	require.Zero(t, a.Candidate.Remaining(), "what begins later does not count")
	next, err := a.Candidate.Await(etcdtest.Context(t))
	require.NoError(t, err)
	require.Positive(t, a.Candidate.Remaining())

	next.Retire(nil)
	require.Positive(t, a.Candidate.Remaining(), "the key stands, and beats go on")
	require.NoError(t, cluster.Member(0).Stop())
	etcdtest.Eventually(t, func() bool { return a.Candidate.Remaining() == 0 }, "nothing remains")
	require.NoError(t, cluster.Member(0).Cont())
	time.Sleep(slow)
	require.Zero(t, a.Candidate.Remaining(), "what begins later does not count")
	require.NoError(t, next.Resign(etcdtest.Context(t)))
	e := etcdtest.Take(t, ended, "the end")
	require.True(t, e.Led)
	require.False(t, e.Retired.IsZero())
	require.Zero(t, a.Candidate.Remaining())
}

// A tenure that is suspended, and ends while its win is proven anew, was one; it was not retired.
func TestEndOfASuspendedTenure(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli := cluster.Client(t)
	ended := make(chan election.EndedEvent, 9)
	a := electiontest.Join(t, cli, etcdtest.Election(t), beating, func(_ *lease.Config, e *election.Config) {
		e.Hooks.Ended = func(e election.EndedEvent) { ended <- e }
	})
	l := a.Lead(t)
	require.NoError(t, cluster.Member(0).Stop())
	<-l.Done()
	waits := make(chan error, 1)
	go func() {
		_, err := a.Candidate.Await(etcdtest.Context(t))
		waits <- err
	}()
	etcdtest.Eventually(t, func() bool { return !a.Candidate.Status().Suspended }, "it is being proven")
	a.Session.Abandon()
	require.ErrorIs(t, etcdtest.Take(t, waits, "the end of the campaign"), eldest.ErrClosed)
	e := etcdtest.Take(t, ended, "the end")
	require.True(t, e.Led)
	require.True(t, e.Retired.IsZero())
	require.NoError(t, cluster.Member(0).Cont())
}
